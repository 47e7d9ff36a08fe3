#include "runmanager/text/json_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/spec/arguments.h"
#include "runmanager/text/json_comments.h"
#include "runmanager/text/json_diagnosis.h"

namespace sweep {
namespace {

constexpr std::size_t kMaxDepth = 64;  // Far beyond any sweep file, far below what overflows a stack.

std::string joined_path(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : path + "." + std::string(key);
}

// Converts byte offsets to lines and columns. Offsets must not decrease: the text is walked once.
class LineCounter {
 public:
  explicit LineCounter(std::string_view text) : text_(text) {}

  void move_to(std::size_t offset) {
    for (; at_ < offset && at_ < text_.size(); ++at_) {
      const auto byte = static_cast<unsigned char>(text_[at_]);
      if (byte == '\n') {
        ++line_;
        column_ = 1;
      } else if ((byte & 0xC0u) != 0x80u) {  // Continuation bytes of UTF-8 take no column.
        ++column_;
      }
    }
  }
  std::size_t line() const { return line_; }
  std::size_t column() const { return column_; }

 private:
  std::string_view text_;
  std::size_t at_ = 0, line_ = 1, column_ = 1;
};

// Builds the tree from the events of nlohmann's SAX parser, which come without positions. Each event comes in
// the order of the text and is about one token, so the builder walks the text beside the parser: position_ is
// the end of the last token seen, and the next event is about the token after it. The walk needs no checks of
// its own, because the parser has accepted every token that an event is about; only strings (with escapes)
// and literals have to be skipped to their end.
//
// Containers that are still open wait in open_, outermost first; close() moves one into its parent. A
// member's key is added by key(), its value by add() when that is complete.
class TreeBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  TreeBuilder(std::string_view text, std::shared_ptr<const std::string> source, bool has_lines,
              std::string path)
      : text_(text),
        source_(std::move(source)),
        has_lines_(has_lines),
        root_path_(std::move(path)),
        lines_(text) {}

  bool null() override { return add(literal(JsonKind::kNull)); }
  bool boolean(bool value) override {
    JsonNode node = literal(JsonKind::kBoolean);
    node.boolean = value;
    return add(std::move(node));
  }
  bool number_integer(number_integer_t value) override { return add_integer(value); }
  bool number_unsigned(number_unsigned_t value) override {
    return std::in_range<std::int64_t>(value) ? add_integer(static_cast<std::int64_t>(value))
                                              : number_float(static_cast<double>(value), "");
  }
  bool number_float(number_float_t value, const string_t&) override {
    JsonNode node = literal(JsonKind::kNumber);
    node.number = value;
    return add(std::move(node));
  }
  bool string(string_t& value) override {
    const std::size_t start = next_token();
    skip_string();
    JsonNode node;
    node.kind = JsonKind::kString;
    node.location = location_of(start, value_path());
    node.text = std::move(value);
    return add(std::move(node));
  }
  bool binary(binary_t&) override { return false; }  // Text has none.
  bool start_object(std::size_t) override { return open(JsonKind::kObject); }
  bool start_array(std::size_t) override { return open(JsonKind::kArray); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& key) override {
    const std::size_t start = next_token();
    skip_string();
    JsonNode& object = open_.back();
    auto location = location_of(start, joined_path(object.location->path, key));
    if (const JsonMember* first = object.find_member(key)) {
      return fail(start, fmt::format("the key {} stands here twice; the first is at {}:{}", in_quotes(key),
                                     first->key_location->line, first->key_location->column));
    }
    object.members.push_back({std::move(key), std::move(location), {}});
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) override {
    OpenBrackets brackets;
    for (const JsonNode& node : open_) brackets.push_back(node.location->offset);
    mistake_ = explain_json_error(text_, position_, brackets, error.what());
    return false;
  }

  JsonNode release_root() { return std::move(root_); }
  const std::optional<JsonMistake>& mistake() const { return mistake_; }

 private:
  bool fail(std::size_t offset, std::string message) {
    mistake_ = JsonMistake{offset, std::move(message)};
    return false;
  }

  // Returns the start of the token that the current event is about. The parser has accepted the commas and
  // colons before it.
  std::size_t next_token() {
    while (position_ < text_.size() &&
           std::string_view(" \t\r\n,:").find(text_[position_]) != std::string_view::npos)
      ++position_;
    return position_;
  }
  void skip_string() {
    for (++position_; position_ < text_.size() && text_[position_] != '"'; ++position_) {
      if (text_[position_] == '\\') ++position_;
    }
    ++position_;
  }

  std::shared_ptr<const JsonLocation> location_of(std::size_t start, std::string path) {
    JsonLocation location{source_, 0, 0, start, std::move(path)};
    if (has_lines_) {
      lines_.move_to(start);
      location.line = lines_.line();
      location.column = lines_.column();
    }
    return std::make_shared<const JsonLocation>(std::move(location));
  }

  std::string value_path() const {
    if (open_.empty()) return root_path_;
    const JsonNode& parent = open_.back();
    if (parent.is(JsonKind::kObject)) return joined_path(parent.location->path, parent.members.back().key);
    return joined_path(parent.location->path, std::to_string(parent.elements.size()));
  }

  // Skips a number, true, false or null and returns a node with its text.
  JsonNode literal(JsonKind kind) {
    const std::size_t start = next_token();
    while (position_ < text_.size() &&
           std::string_view(" \t\r\n,:]}").find(text_[position_]) == std::string_view::npos)
      ++position_;
    JsonNode node;
    node.kind = kind;
    node.text = std::string(text_.substr(start, position_ - start));
    node.location = location_of(start, value_path());
    return node;
  }

  bool add_integer(std::int64_t value) {
    JsonNode node = literal(JsonKind::kInteger);
    node.integer = value;
    node.number = static_cast<double>(value);
    return add(std::move(node));
  }

  bool add(JsonNode node) {
    if (open_.empty()) {
      root_ = std::move(node);
      return true;
    }
    JsonNode& parent = open_.back();
    if (parent.is(JsonKind::kObject)) {
      parent.members.back().value = std::move(node);
    } else {
      parent.elements.push_back(std::move(node));
    }
    return true;
  }

  bool open(JsonKind kind) {
    const std::size_t start = next_token();
    if (open_.size() == kMaxDepth)
      return fail(start, fmt::format("more than {} brackets inside each other", kMaxDepth));
    ++position_;
    JsonNode node;
    node.kind = kind;
    node.location = location_of(start, value_path());
    open_.push_back(std::move(node));
    return true;
  }

  bool close() {
    next_token();
    ++position_;
    JsonNode node = std::move(open_.back());
    open_.pop_back();
    return add(std::move(node));
  }

  std::string_view text_;
  std::shared_ptr<const std::string> source_;
  bool has_lines_;
  std::string root_path_;
  LineCounter lines_;
  std::size_t position_ = 0;    // end of the last token that became part of the tree
  std::vector<JsonNode> open_;  // containers without their closing bracket yet
  JsonNode root_;
  std::optional<JsonMistake> mistake_;
};

[[noreturn]] void throw_mistake(std::string_view text, const std::string& source, bool has_lines,
                                const JsonMistake& mistake) {
  if (!has_lines) throw ConfigError(source + ": " + mistake.message);
  LineCounter lines(text);
  lines.move_to(mistake.offset);
  throw ConfigError(fmt::format("{}:{}:{}: {}", source, lines.line(), lines.column(), mistake.message));
}

}  // namespace

std::string to_string(const JsonLocation& location) {
  std::string text = location.source ? *location.source : "";
  if (location.line > 0) text += fmt::format(":{}:{}", location.line, location.column);
  if (!location.path.empty()) text += ": " + location.path;
  return text;
}

const JsonMember* JsonNode::find_member(std::string_view key) const {
  const auto found =
      std::find_if(members.begin(), members.end(), [&](const JsonMember& m) { return m.key == key; });
  return found == members.end() ? nullptr : &*found;
}
const JsonNode* JsonNode::find(std::string_view key) const {
  const JsonMember* member = find_member(key);
  return member == nullptr ? nullptr : &member->value;
}
JsonNode* JsonNode::find(std::string_view key) {
  return const_cast<JsonNode*>(std::as_const(*this).find(key));
}

JsonNode parse_json(std::string_view text, const std::string& source, bool has_lines,
                    const std::string& path) {
  std::string plain;
  if (has_lines) text = plain = without_comments(text);
  if (text.substr(0, 3) == "\xEF\xBB\xBF") text.remove_prefix(3);  // Some editors put this mark before UTF-8.
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    throw_mistake(text, source, has_lines,
                  {0, text.empty() ? "the file is empty" : "the file holds nothing but blanks"});
  }
  if (const std::size_t bad = find_bad_utf8(text); bad != std::string_view::npos) {
    throw_mistake(text, source, has_lines, explain_json_error(text, bad, {}, ""));
  }
  // The parser would take it for the end of the text.
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos)
    throw_mistake(text, source, has_lines, {nul, "the file holds a NUL byte"});
  TreeBuilder builder(text, std::make_shared<const std::string>(source), has_lines, path);
  const bool whole = nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  if (builder.mistake()) throw_mistake(text, source, has_lines, *builder.mistake());
  if (!whole) throw_mistake(text, source, has_lines, {0, "not a JSON document"});
  return builder.release_root();
}

nlohmann::ordered_json to_json(const JsonNode& node) {
  switch (node.kind) {
    case JsonKind::kNull:
      return nullptr;
    case JsonKind::kBoolean:
      return node.boolean;
    case JsonKind::kInteger:
      return node.integer;
    case JsonKind::kNumber:
      return node.number;
    case JsonKind::kString:
      return node.text;
    case JsonKind::kArray: {
      auto array = nlohmann::ordered_json::array();
      for (const JsonNode& element : node.elements) array.push_back(to_json(element));
      return array;
    }
    case JsonKind::kObject:
      break;
  }
  auto object = nlohmann::ordered_json::object();
  for (const JsonMember& member : node.members) object[member.key] = to_json(member.value);
  return object;
}

JsonNode from_json(const nlohmann::ordered_json& json, std::shared_ptr<const JsonLocation> location) {
  JsonNode node;
  node.location = location;
  if (json.is_boolean()) {
    node.kind = JsonKind::kBoolean;
    node.boolean = json.get<bool>();
    node.text = node.boolean ? "true" : "false";
  } else if (json.is_number_integer() &&
             (!json.is_number_unsigned() || std::in_range<std::int64_t>(json.get<std::uint64_t>()))) {
    node.kind = JsonKind::kInteger;
    node.integer = json.get<std::int64_t>();
    node.number = static_cast<double>(node.integer);
    node.text = std::to_string(node.integer);
  } else if (json.is_number()) {
    node.kind = JsonKind::kNumber;
    node.number = json.get<double>();
    node.text = number_text(node.number);
  } else if (json.is_string()) {
    node.kind = JsonKind::kString;
    node.text = json.get<std::string>();
  } else if (json.is_array()) {
    node.kind = JsonKind::kArray;
    for (const auto& element : json) node.elements.push_back(from_json(element, location));
  } else if (json.is_object()) {
    node.kind = JsonKind::kObject;
    for (const auto& [key, value] : json.items())
      node.members.push_back({key, location, from_json(value, location)});
  }
  return node;
}

bool same_value(const JsonNode& a, const JsonNode& b) {
  if (a.is_number() && b.is_number()) {
    const bool integers = a.is(JsonKind::kInteger) && b.is(JsonKind::kInteger);
    return integers ? a.integer == b.integer : a.number == b.number;
  }
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case JsonKind::kBoolean:
      return a.boolean == b.boolean;
    case JsonKind::kString:
      return a.text == b.text;
    case JsonKind::kArray:
      return std::equal(a.elements.begin(), a.elements.end(), b.elements.begin(), b.elements.end(),
                        same_value);
    case JsonKind::kObject:
      return a.members.size() == b.members.size() &&
             std::all_of(a.members.begin(), a.members.end(), [&](const JsonMember& member) {
               const JsonNode* other = b.find(member.key);
               return other != nullptr && same_value(member.value, *other);
             });
    default:
      return true;
  }
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kMaxShown = 60;  // bytes; enough to recognise a value by
  std::string shown = "\"";
  std::size_t i = 0;
  for (; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (i >= kMaxShown && (byte & 0xC0u) != 0x80u) break;  // Never cut inside a character.
    if (byte < 0x20 || byte == 0x7F) {
      shown += fmt::format("\\u{:04x}", byte);
    } else {
      shown += text[i];
    }
  }
  return shown + (i < text.size() ? "…\"" : "\"");
}

std::string describe(const JsonNode& node) {
  switch (node.kind) {
    case JsonKind::kNull:
      return "null";
    case JsonKind::kBoolean:
      return node.boolean ? "true" : "false";
    case JsonKind::kInteger:
    case JsonKind::kNumber:
      return node.text.size() <= 40 ? node.text : node.text.substr(0, 40) + "…";
    case JsonKind::kString:
      return node.text.empty() ? "an empty string" : in_quotes(node.text);
    case JsonKind::kArray:
      return node.elements.empty() ? "an empty list" : fmt::format("a list of {}", node.elements.size());
    case JsonKind::kObject:
      break;
  }
  return node.members.empty() ? "an empty object" : "an object";
}

}  // namespace sweep
