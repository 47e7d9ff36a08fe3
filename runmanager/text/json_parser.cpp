// The parser of the files that people write: it knows what it expected, so that a mistake is explained where
// it is found.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <utility>

#include "core/base/error.h"
#include "core/base/printable.h"
#include "core/base/suggest.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "runmanager/text/json_document.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxDepth = 64;  // Far beyond any sweep file, far below what overflows a stack.
constexpr std::size_t kMaxShownWord = 40;

bool is_word_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("_.+-$").find(c) != std::string_view::npos;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Returns the character in quotes, or its number if it cannot be printed.
std::string shown(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x7F ? fmt::format("'{}'", c) : fmt::format("the byte 0x{:02X}", byte);
}

// What is wrong with a word that is neither a number nor true, false or null.
std::string explained_word(const std::string& whole) {
  const std::string word = whole.substr(0, kMaxShownWord);
  const bool has_sign = word.size() > 1 && std::string_view("-+.").find(word[0]) != std::string_view::npos;
  const char first = has_sign ? word[1] : word[0];
  if (is_digit(first) || first == '.')
    return fmt::format("{} is not a number of JSON, want one like 10, 0.01 or 1e-4", word);
  const std::string lower = lower_case(word);
  if (lower.find("nan") != std::string::npos || lower.find("inf") != std::string::npos)
    return fmt::format("{} is not a number of JSON, want a finite one", word);
  const std::string literals[] = {"true", "false", "null"};
  const std::string nearest = lower == "none" ? "null" : nearest_name(word, literals);
  return fmt::format("{} is not a value, want a string in double quotes, a number, true, false or null{}",
                     word, nearest.empty() ? "" : fmt::format(", did you mean {}?", nearest));
}

class JsonParser {
 public:
  JsonParser(std::string_view text, const std::string& source, bool has_lines)
      : text_(text), has_lines_(has_lines) {
    source_.name = source;
  }

  JsonDocument parse_document(const KeyPath& path) {
    check_text();
    skip_blanks();
    if (at_end()) fail(0, text_.empty() ? "the file is empty" : "the file holds nothing but blanks");
    Json root = parse_value(at_);
    skip_blanks();
    if (!at_end()) fail(at_, fmt::format("the document has ended, but {} follows", shown(text_[at_])));
    if (has_lines_) source_.text = text_;
    return {std::move(root), {std::make_shared<const JsonSource>(std::move(source_)), path}};
  }

 private:
  [[noreturn]] void fail(std::size_t offset, const std::string& message) const {
    throw ConfigError(source_.name + (has_lines_ ? ":" + line_and_column(text_, offset) : "") + ": " +
                      message);
  }

  // What makes the file no text at all.
  void check_text() const {
    if (text_.starts_with("\xFF\xFE") || text_.starts_with("\xFE\xFF"))
      fail(0, "the file is UTF-16, want UTF-8");
    if (text_.starts_with("\x1F\x8B")) fail(0, "the file is compressed with gzip, want plain JSON");
    if (const std::size_t bad = find_bad_utf8(text_); bad != std::string_view::npos)
      fail(bad, fmt::format("the byte 0x{:02X} is not UTF-8", static_cast<unsigned char>(text_[bad])));
    if (const std::size_t nul = text_.find('\0'); nul != std::string_view::npos)
      fail(nul, "the file holds a NUL byte, want text");
  }

  bool at_end() const { return at_ == text_.size(); }
  bool next_is(char c) const { return !at_end() && text_[at_] == c; }

  // Skips blanks and comments.
  void skip_blanks() {
    for (;;) {
      at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size());
      if (next_is('#')) fail(at_, "comments begin with // or are between /* and */");
      const std::string_view rest = text_.substr(at_);
      if (has_lines_ && rest.starts_with("//")) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (has_lines_ && rest.starts_with("/*")) {
        const std::size_t end = text_.find("*/", at_ + 2);
        if (end == std::string_view::npos) fail(at_, "the comment that starts here has no closing */");
        at_ = end + 2;
      } else {
        return;
      }
    }
  }

  // The innermost bracket that is open.
  struct Bracket {
    std::size_t offset;
    char closing;
    std::string name() const { return closing == '}' ? "object" : "list"; }
  };

  std::string bracket_text(const Bracket& bracket) const {
    return fmt::format("the {} that starts at {}", bracket.name(), line_and_column(text_, bracket.offset));
  }

  // Fails if the text ends here, or a bracket of the other kind closes.
  void check_inside(const Bracket& bracket) const {
    if (at_end())
      fail(text_.size(),
           fmt::format("the file ends inside {}, want a closing {}", bracket_text(bracket), bracket.closing));
    const bool closes_other = text_[at_] != bracket.closing && (next_is('}') || next_is(']'));
    if (closes_other)
      fail(at_,
           fmt::format("{} is closed by {}, want {}", bracket_text(bracket), text_[at_], bracket.closing));
    if (next_is('\'')) fail(at_, "strings need double quotes (\"), not single ones");
  }

  // After a value inside of `bracket`: skips the comma, or the closing bracket. Returns whether another value
  // follows.
  bool another_follows(const Bracket& bracket) {
    skip_blanks();
    check_inside(bracket);
    const std::size_t comma = at_;
    if (next_is(',')) {
      ++at_;
      skip_blanks();
      check_inside(bracket);
      if (!next_is(bracket.closing)) return true;
      if (!has_lines_)
        fail(comma, fmt::format("the last entry of a list or object has no comma after it: remove this one "
                                "before the {}",
                                bracket.closing));
    }
    if (next_is(bracket.closing)) {
      ++at_;
      return false;
    }
    const char c = text_[at_];
    const bool begins_value = c == '"' || c == '{' || c == '[' || is_word_character(c);
    fail(at_, begins_value
                  ? "a comma is missing before this"
                  : fmt::format("{} is not allowed here, want a comma or {}", shown(c), bracket.closing));
  }

  // The value at path_, whose key is at `key`.
  Json parse_value(std::size_t key) {
    const std::size_t start = at_;
    if (has_lines_) source_.offsets.emplace(path_, JsonSource::Offsets{key, start});
    const char c = text_[at_];
    if (c == '"') return parse_string();
    if (is_word_character(c)) return parse_word();
    if (c == ',') fail(at_, "a value is missing before this comma");
    if (c == '\'') fail(at_, "strings need double quotes (\"), not single ones");
    if (c != '{' && c != '[') fail(at_, fmt::format("{} is not allowed here, want a value", shown(c)));
    if (depth_ == kMaxDepth) fail(at_, fmt::format("more than {} brackets inside each other", kMaxDepth));
    ++depth_;
    ++at_;
    Json value = c == '{' ? parse_members({start, '}'}) : parse_elements({start, ']'});
    --depth_;
    return value;
  }

  // After an opening bracket: whether the other one follows, which is then skipped.
  bool closes_at_once(const Bracket& bracket) {
    skip_blanks();
    check_inside(bracket);
    const bool closes = next_is(bracket.closing);
    at_ += closes ? 1 : 0;
    return closes;
  }

  Json parse_elements(const Bracket& bracket) {
    Json list = Json::array();
    if (closes_at_once(bracket)) return list;
    do {
      path_.push_back(std::to_string(list.size()));
      list.push_back(parse_value(at_));
      path_.pop_back();
    } while (another_follows(bracket));
    return list;
  }

  Json parse_members(const Bracket& bracket) {
    Json::object_t members;
    std::map<std::string, std::size_t> keys;  // and their offsets
    if (closes_at_once(bracket)) return members;
    do {
      const std::size_t start = at_;
      path_.push_back(parse_key());
      if (const auto [first, is_new] = keys.emplace(path_.back(), start); !is_new)
        fail(start, fmt::format("the key {} is given twice; the first is at {}", in_quotes(path_.back()),
                                line_and_column(text_, first->second)));
      parse_colon(bracket);
      Json value = parse_value(start);  // moves path_
      members.emplace_back(path_.back(), std::move(value));
      path_.pop_back();
    } while (another_follows(bracket));
    return members;
  }

  std::string parse_key() {
    if (next_is(',')) fail(at_, "a value is missing before this comma");
    if (!next_is('"'))
      fail(at_, fmt::format("a key in double quotes is missing before {}", shown(text_[at_])));
    return parse_string();
  }

  void parse_colon(const Bracket& bracket) {
    skip_blanks();
    check_inside(bracket);
    if (!next_is(':'))
      fail(at_,
           fmt::format("a colon is missing between the key and its value, before {}", shown(text_[at_])));
    ++at_;
    skip_blanks();
    if (next_is('}') || next_is(']')) fail(at_, "a value is missing after the colon");
    check_inside(bracket);
  }

  Json parse_word() {
    const std::size_t start = at_;
    while (!at_end() && is_word_character(text_[at_])) ++at_;
    const std::string word(text_.substr(start, at_ - start));
    const Json value = Json::parse(word, nullptr, /*allow_exceptions=*/false);
    if (value.is_discarded()) {
      const std::string explained = explained_word(word);
      const bool is_whole = path_.empty() && !explained.ends_with('?');
      const bool is_number = word.find_first_not_of("+-.0123456789eE") == std::string::npos;
      fail(start, is_number && std::isinf(std::strtod(word.c_str(), nullptr))
                      ? fmt::format("{} is too large for a number", word.substr(0, kMaxShownWord))
                      : explained + (is_whole ? "; a JSON file begins with {" : ""));
    }
    if (!value.is_number() || word.find_first_of(".eE") != std::string::npos) return value;
    constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min(),
                           kMax = std::numeric_limits<std::int64_t>::max();
    // As a number it would lose its last digits.
    if (value.is_number_float() || (value.is_number_unsigned() && value.get<std::uint64_t>() > kMax))
      fail(start, fmt::format("{} does not fit 64 bits, want an integer from {} to {}, or a number like 1e20",
                              word.substr(0, kMaxShownWord), kLeast, kMax));
    return value.get<std::int64_t>();
  }

  // Offset of the quote that ends the string at `start`.
  std::size_t end_of_string(std::size_t start) {
    std::size_t i = start + 1;
    while (i < text_.size() && text_[i] != '\n' && text_[i] != '"')
      i += text_[i] == '\\' && !text_.substr(i + 1).starts_with('\n') ? 2 : 1;
    if (i >= text_.size() || text_[i] != '"')
      fail(start, "the string that starts here has no closing quote on its line");
    return i;
  }

  std::string parse_string() {
    const std::size_t start = at_, end = end_of_string(at_);
    for (++at_; at_ < end;) {
      const char c = text_[at_];
      if (static_cast<unsigned char>(c) < 0x20)
        fail(at_, fmt::format("a string holds the control character U+{:04X}, want \\u{:04x} instead",
                              static_cast<unsigned>(c), static_cast<unsigned>(c)));
      at_ += c == '\\' ? escape_size() : 1;
    }
    ++at_;
    const std::string_view literal = text_.substr(start, at_ - start);
    if (literal.find('\\') == std::string_view::npos)
      return std::string(literal.substr(1, literal.size() - 2));
    return Json::parse(literal).get<std::string>();
  }

  // Bytes of the escape that is next: \n, \uXXXX, or two of these for a surrogate pair.
  std::size_t escape_size() const {
    if (text_[at_ + 1] != 'u') {
      if (std::string_view("\"\\/bfnrt").find(text_[at_ + 1]) != std::string_view::npos) return 2;
      std::size_t end = at_ + 2;  // of the whole UTF-8 character
      while (end < text_.size() && (static_cast<unsigned char>(text_[end]) & 0xC0) == 0x80) ++end;
      fail(at_, fmt::format("{} is no escape of JSON, allowed: \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX",
                            shown_text(text_.substr(at_, end - at_), end - at_)));
    }
    for (const std::size_t size : {6, 12})
      if (Json::accept(fmt::format("\"{}\"", text_.substr(at_, size)))) return size;
    fail(at_, "this \\u escape does not name a character, want \\u and 4 hexadecimal digits");
  }

  std::string_view text_;
  JsonSource source_;
  bool has_lines_;
  std::size_t at_ = 0, depth_ = 0;
  KeyPath path_;  // of the value that is read
};

}  // namespace

JsonDocument parse_json(std::string_view text, const std::string& source, bool has_lines,
                        const KeyPath& path) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // Some editors put this mark before UTF-8.
  return JsonParser(text, source, has_lines).parse_document(path);
}

}  // namespace sweep
