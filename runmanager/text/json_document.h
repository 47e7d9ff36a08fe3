// JSON with the location of every value and key, so that messages can point at them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace sweep {

/// Where a value or key stands, and its path.
struct JsonLocation {
  std::shared_ptr<const std::string> source;  // the file as it was named, or `override "lr=-1"`
  std::size_t line = 0;                       // from 1; 0: the source has no lines
  std::size_t column = 0;                     // in characters (not bytes), from 1
  std::size_t offset = 0;                     // in bytes, from the start of the source
  std::string path;                           // "params.lr.0"; "" for the whole document
};

/// "sweeps/fashion.json:7:13: params.lr.0"; without line and column, or without the path, if there is none.
/// Control characters of the path are escaped, and a long one is cut.
std::string to_string(const JsonLocation& location);

enum class JsonKind { kNull, kBoolean, kInteger, kNumber, kString, kArray, kObject };

struct JsonMember;

/// A value with its location. Copies share locations.
struct JsonNode {
  JsonKind kind = JsonKind::kNull;
  bool boolean = false;
  std::int64_t integer = 0;         // kInteger
  double number = 0;                // kInteger and kNumber
  std::string text;                 // the string; or the number as it was written
  std::vector<JsonNode> elements;   // kArray
  std::vector<JsonMember> members;  // kObject, in the order of the file; keys differ
  std::shared_ptr<const JsonLocation> location;

  bool is(JsonKind k) const { return kind == k; }
  bool is_number() const { return kind == JsonKind::kInteger || kind == JsonKind::kNumber; }
  /// Returns the value of member `key`, or nullptr if there is none or this is no object.
  const JsonNode* find(std::string_view key) const;
  JsonNode* find(std::string_view key);
  const JsonMember* find_member(std::string_view key) const;
};

struct JsonMember {
  std::string key;
  std::shared_ptr<const JsonLocation> key_location;
  JsonNode value;
};

/// Parses one JSON document (RFC 8259, at most 64 levels deep, no repeated keys, numbers that fit a double,
/// integers that fit 64 bits signed; larger ones become doubles). A UTF-8 byte order mark is skipped. With
/// `has_lines`, comments (//, /* */) and commas before a closing bracket are allowed.
/// `source` names the document in messages; with `has_lines` false, locations have no line and column. `path`
/// is put before the path of every value. Throws ConfigError: "SOURCE:LINE:COLUMN: what is wrong".
JsonNode parse_json(std::string_view text, const std::string& source, bool has_lines = true,
                    const std::string& path = "");

/// The value without locations, members in order.
nlohmann::ordered_json to_json(const JsonNode& node);

/// Returns a value at `location` from JSON that the program made. Integers beyond 64 bits signed become
/// doubles.
JsonNode from_json(const nlohmann::ordered_json& json, std::shared_ptr<const JsonLocation> location);

/// Whether both are the same value. 1 and 1.0 are, and members may differ in order.
bool same_value(const JsonNode& a, const JsonNode& b);

/// Returns what messages call the value: `"adma"`, `-1`, `true`, `null`, `an empty list`, `a list of 3`, `an
/// object`. Long strings are cut, and control characters are escaped.
std::string describe(const JsonNode& node);

/// `text` with control characters escaped, cut after `most` bytes.
std::string shown_text(std::string_view text, std::size_t most);

/// The string in quotes as describe() shows it.
std::string in_quotes(std::string_view text);

}  // namespace sweep
