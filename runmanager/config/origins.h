// Where the settings of a run stand in the sweep file.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sweep {

struct JsonLocation;

/// The location of each setting that was given, by its key path: "batch_size", "network.layers.0". Runs of a
/// sweep share what they have in common, so that copies cost little.
class Origins {
 public:
  using Locations = std::map<std::string, std::shared_ptr<const JsonLocation>, std::less<>>;
  /// A top-level key, and the locations of what is given at and below it.
  using Part = std::pair<const char*, std::shared_ptr<const Locations>>;

  Origins() = default;
  /// Among the keys of `parts` only what is in `parts` counts. Keys must live as long as the program.
  explicit Origins(std::shared_ptr<const Locations> common, std::vector<Part> parts = {})
      : common_(std::move(common)), parts_(std::move(parts)) {}

  /// "FILE:LINE:COLUMN: key.path"; nothing for a setting that was not given.
  std::optional<std::string> find(std::string_view path) const;
  bool contains(std::string_view path) const { return find(path).has_value(); }

  /// What there is without parts; empty if nothing was given.
  const std::shared_ptr<const Locations>& common() const { return common_; }

 private:
  std::shared_ptr<const Locations> common_;
  std::vector<Part> parts_;
};

}  // namespace sweep
