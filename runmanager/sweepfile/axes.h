// The combinations that a sweep file asks for, read and checked but not yet expanded.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runmanager/config/problems.h"
#include "runmanager/search/search_space.h"
#include "runmanager/sweepfile/key_path.h"
#include "runmanager/text/json_document.h"

namespace sweep {

/// A swept key and its values.
struct Axis {
  std::string key;                      // as written: "momentum"
  KeyPath path;                         // "optimizer", "momentum"
  JsonPlace place;                      // of the key
  JsonDocument values;                  // a list, all different; none if there is a range
  std::optional<Dimension> range = {};  // numbers that a search draws from

  JsonView value(std::size_t index) const { return JsonView(values).at(index); }
};

/// Holds if the value at `path` is one of `values`, or an element of one that is a list.
struct Condition {
  std::string key;
  KeyPath path;
  std::vector<nlohmann::ordered_json> values;
};

/// The part of an axis's value at `path` that conditions compare: the name of an optimizer or data set that
/// is an object, else the value.
const nlohmann::ordered_json& compared_value(const nlohmann::ordered_json& value, const KeyPath& path);

/// Whether the condition holds if compared_value() is `value`.
bool is_met(const Condition& condition, const nlohmann::ordered_json& value);

/// Leaves out the combinations for which all conditions hold.
struct ExcludeRule {
  JsonPlace place;
  std::vector<Condition> conditions;
};

/// The axis at `path` exists only if all conditions hold.
struct WhenRule {
  KeyPath path;
  JsonPlace place;
  std::vector<Condition> conditions;
};

/// Axes whose product is taken; `zipped` lists groups of indices into `axes` that advance together.
struct Grid {
  std::vector<Axis> axes;
  std::vector<std::vector<std::size_t>> zipped;
};

/// Everything that is to run: the union of the grids, minus what the rules leave out.
struct SearchSpace {
  std::vector<Grid> grids;  // at least one; without "grids" in the file the one of "params"
  std::vector<ExcludeRule> exclude;
  std::vector<WhenRule> when;
  int repeats = 1;
};

/// Reads "params", "grids", "zip", "exclude", "when" and "repeats" of `root`, and reports every mistake.
SearchSpace read_search_space(const JsonView& root, Problems& problems);

/// Calls `use` with each object of axes of a file, "params" and those of "grids", and its path.
void each_axes(JsonDocument& root,
               const std::function<void(nlohmann::ordered_json& axes, const KeyPath& at)>& use);

/// A form that an axis may have besides a list, an object with one key: {"range": [first, last, step]}.
struct AxisForm {
  std::string_view key;
  const char* numbers;                 // "first, last, step"
  std::optional<DimensionKind> drawn;  // the numbers that a search draws; nothing: they represent a list
};
std::span<const AxisForm> axis_forms();
/// Whether `node` has one of these forms.
bool has_axis_form(const JsonView& node);

/// What the member of "params" represents: the elements of a list, each with its place, computed numbers, or
/// a range. Adds a problem, and returns neither, if it is none of these. Computed numbers are rounded to 12
/// digits: 0.3, not 0.30000000000000004. Without the path.
Axis read_axis(const JsonView& node, Problems& problems);

}  // namespace sweep
