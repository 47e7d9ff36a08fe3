// JSON that people write: values with their places in the text, so that messages can point there, and the
// mistakes that are found in it, which are reported together.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sweep {

/// Parts of a dotted key, or the way to a value: {"network", "layers", "0", "out_channels"}.
using KeyPath = std::vector<std::string>;

std::string joined(const KeyPath& path);

/// A text that values are from.
struct JsonSource {
  struct Offsets {
    std::size_t key = 0, value = 0;  // in bytes
  };
  std::string name;                         // the file as it was named, or `override "lr=-1"`
  std::string text = {};                    // empty: messages name no line and column
  std::map<KeyPath, Offsets> offsets = {};  // of every value in the text
};

/// Where a value is, or its key.
struct JsonPlace {
  std::shared_ptr<const JsonSource> source;
  KeyPath path = {};  // in the source: {"params", "lr", "0"}; empty for the whole document
  bool is_key = false;
  bool is_whole = false;  // parts of the value have no place of their own

  bool has_lines() const { return !source->text.empty(); }
  /// "7:13"; "" if there are no lines.
  std::string line_and_column() const;
  /// The same, for a value whose parts have no place of their own.
  JsonPlace whole() const;
  /// In bytes, from the start of the text; 0 if there are no lines.
  std::size_t offset() const;
};

/// "7:13", the line and the column in characters, both from 1.
std::string line_and_column(std::string_view text, std::size_t offset);

/// "sweeps/fashion.json:7:13: params.lr.0"; without line and column, or without the path, if there is none.
/// Control characters of the path are escaped, and a long one is cut.
std::string to_string(const JsonPlace& place);

class JsonView;

/// A value, and the places that its parts are from.
class JsonDocument {
 public:
  using Json = nlohmann::ordered_json;

  /// Parts of `value` are from below `place`.
  JsonDocument(Json value, JsonPlace place) : json(std::move(value)), places_{{{}, std::move(place)}} {}
  /// A copy of a part of another document.
  explicit JsonDocument(const JsonView& value);

  /// Changes keep the places; a new part has the place of its parent, unless set() gives another.
  Json json;

  JsonPlace place(const KeyPath& path) const;
  /// Sets the place of the part at `path` and all below it.
  void set_place(const KeyPath& path, JsonPlace place);
  /// Puts `value`, of another document, in the place of `part`, which is at `path`, with its places.
  void set(Json& part, const KeyPath& path, const JsonView& value);

 private:
  std::map<KeyPath, JsonPlace> places_;  // each also of what is below it
};

/// A value of a document and the way to it, or nothing, which reads like null. Refers to the document and is
/// valid as long as the value is at the same address.
class JsonView {
 public:
  using Json = JsonDocument::Json;

  JsonView() = default;
  /// All of it.
  JsonView(const JsonDocument& document) : document_(&document), value_(&document.json) {}

  explicit operator bool() const { return document_ != nullptr; }
  const Json& operator*() const { return value_ != nullptr ? *value_ : nothing(); }
  const Json* operator->() const { return &**this; }
  /// The string; "" if it is none.
  const std::string& text() const;
  /// The number; 0 if it is none.
  double number() const { return (*this)->is_number() ? (*this)->get<double>() : 0; }

  /// The member of an object, or nothing.
  JsonView find(std::string_view key) const;
  /// The values of an object or a list; none of anything else.
  std::vector<JsonView> children() const;
  /// The element of a list, which has one at `index`.
  JsonView at(std::size_t index) const { return below(std::to_string(index), (*this)->at(index)); }

  const JsonDocument& document() const { return *document_; }
  const KeyPath& path() const { return path_; }
  const std::string& key() const { return path_.back(); }
  JsonPlace place() const { return document_->place(path_); }
  JsonPlace key_place() const;

 private:
  static const Json& nothing();
  JsonView below(std::string key, const Json& value) const;

  const JsonDocument* document_ = nullptr;
  const Json* value_ = nullptr;
  KeyPath path_;

  friend class JsonDocument;
};

/// Parses one JSON document (RFC 8259, at most 64 levels deep, no repeated keys, numbers that fit a double,
/// integers that fit 64 bits signed). A UTF-8 byte order mark is skipped. With `has_lines`, comments (//, /*
/// */) and commas before a closing bracket are allowed. `source` names the document in messages; with
/// `has_lines` false, they have no line and column, and `path` is put before the path of every value. Throws
/// ConfigError: "SOURCE:LINE:COLUMN: what is wrong".
JsonDocument parse_json(std::string_view text, const std::string& source, bool has_lines = true,
                        const KeyPath& path = {});

/// A value that the program made, which messages call `source`.
JsonDocument document_of(nlohmann::ordered_json value, const std::string& source);

/// Whether both are the same value. 1 and 1.0 are, and members may differ in order.
bool same_value(const nlohmann::ordered_json& a, const nlohmann::ordered_json& b);

/// Returns what messages call the value: `"adma"`, `-1`, `true`, `null`, `an empty list`, `[3, 0]`, `a list
/// of 3`, `an object`. A number is as it was written. Long strings are cut, and control characters are
/// escaped.
std::string describe(const JsonView& value);

/// The string in quotes as describe() shows it.
std::string in_quotes(std::string_view text);

/// Mistakes found so far. The same one found in many runs counts once. Not thread-safe.
class Problems {
 public:
  /// "PLACE: text".
  void add(const JsonPlace& place, std::string_view text);
  void add(const JsonView& value, std::string_view text) { add(value.place(), text); }
  /// "PLACE: got FOUND, want ALLOWED", with ", did you mean "NEAREST"?" unless that is empty.
  void add_value(const JsonView& value, std::string_view allowed, std::string_view nearest = {});
  /// A value whose key is none of `allowed`; names them all, and the nearest, or ends with `elsewhere` if
  /// that is not empty.
  void add_unknown_key(const JsonView& value, std::span<const std::string> allowed,
                       const std::string& elsewhere = "");
  /// A whole message, which starts with its location.
  void add_message(std::string message);

  bool empty() const { return entries_.empty(); }
  std::size_t size() const { return entries_.size(); }

  /// Throws ConfigError with every message, one per line, in the order of the file; does nothing if there is
  /// none.
  void throw_if_any() const;

 private:
  struct Entry {
    std::size_t source;  // sources in the order of their first mistake
    std::size_t offset;
    std::string message;
  };
  void insert(const std::string& source, std::size_t offset, std::string message);

  std::vector<std::string> sources_;
  std::vector<Entry> entries_;
  std::set<std::string> seen_;
};

/// The name of a key that other programs call `word`: "lr" for "learning_rate"; `word` for others.
std::string our_name(std::string_view word);
/// Returns ", did you mean "lr"?", or "" if no candidate is near. Knows what other programs call a key.
std::string suggestion(std::string_view wrong, std::span<const std::string> candidates);

}  // namespace sweep
