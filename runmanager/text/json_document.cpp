#include "runmanager/text/json_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/spec/arguments.h"

namespace sweep {

std::string shown_text(std::string_view text, std::size_t most) {
  std::string shown;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (i >= most && (byte & 0xC0u) != 0x80u) return shown + "…";  // Never cut inside a character.
    if (byte < 0x20 || byte == 0x7F)
      shown += fmt::format("\\u{:04x}", byte);
    else
      shown += text[i];
  }
  return shown;
}

std::string to_string(const JsonLocation& location) {
  std::string text = location.source ? *location.source : "";
  if (location.line > 0) text += fmt::format(":{}:{}", location.line, location.column);
  constexpr std::size_t kMaxShownPath = 200;  // bytes; one of layers in layers is long
  if (!location.path.empty()) text += ": " + shown_text(location.path, kMaxShownPath);
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
  return "\"" + shown_text(text, kMaxShown) + "\"";
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
