// Collects the mistakes of a sweep file, to report them together.
#pragma once

#include <cstddef>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runmanager/text/json_document.h"

namespace sweep {

/// Mistakes found so far. The same one found in many runs counts once. Not thread-safe.
class Problems {
 public:
  /// "PLACE: text".
  void add(const JsonPlace& place, std::string_view text);
  void add(const JsonView& value, std::string_view text) { add(value.place(), text); }
  /// "PLACE: got FOUND, want ALLOWED", with ", did you mean "NEAREST"?" unless that is empty.
  void add_value(const JsonView& value, std::string_view allowed, std::string_view nearest = {});
  /// A value whose key is none of `allowed`; names them all, and the nearest.
  void add_unknown_key(const JsonView& value, std::span<const std::string> allowed);
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

/// Returns ", did you mean "lr"?", or "" if no candidate is near. Knows what other programs call a key.
std::string suggestion(std::string_view wrong, std::span<const std::string> candidates);

}  // namespace sweep
