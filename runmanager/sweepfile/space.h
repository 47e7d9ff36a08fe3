// The points of a sweep: the product of its axes, which a grid tries all of and a search draws from, with
// conditions and without what is left out.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runmanager/search/search_space.h"
#include "runmanager/sweepfile/key_path.h"
#include "runmanager/text/json_document.h"

namespace sweep {

/// A swept key and its values.
struct Axis {
  std::string key;                      // as written: "momentum"
  KeyPath path;                         // "optimizer", "momentum"
  JsonPlace place;                      // of the key
  JsonDocument values;                  // a list, all different; of a range the lowest one
  std::optional<Dimension> range = {};  // numbers that a search draws from

  /// The value at a point's number: the index of a choice, or the number of a range.
  nlohmann::ordered_json json_at(double number) const;
  JsonDocument value_at(double number) const;  // with its place
};

/// Holds if the value at `path` is one of `values`, or an element of one that is a list.
struct Condition {
  std::string key;
  KeyPath path;
  std::vector<nlohmann::ordered_json> values;
};

/// Whether the condition holds if compared_value() is `value`.
bool is_met(const Condition& condition, const nlohmann::ordered_json& value);

/// Where all conditions hold, "exclude" leaves a combination out; only there, the axis of a "when" exists.
struct Rule {
  JsonPlace place;
  std::vector<Condition> conditions;
  KeyPath axis = {};  // of "when"
};

/// Axes whose product is taken; `zipped` lists groups of indices into `axes` that advance together.
struct Grid {
  std::vector<Axis> axes;
  std::vector<std::vector<std::size_t>> zipped;
};

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

/// An axis with one of its values.
struct AxisValue {
  const Axis* axis = nullptr;
  double number = 0;  // of the point
  JsonDocument value() const { return axis->value_at(number); }
  auto operator<=>(const AxisValue&) const = default;
};

/// One run before its settings are read.
struct Combination {
  std::vector<AxisValue> values;  // the swept keys, in file order; "repeat" is not among them
  int repeat = 0;
  const Rule* excluded = nullptr;  // what leaves it out; null: nothing does
};

/// Everything that is to run: the union of the grids, minus what the rules leave out. Thread-safe.
/// Combinations refer to it.
class Space {
 public:
  /// Reads "params", "grids", "zip", "exclude", "when" and "repeats" of `file`, whose plain values conditions
  /// may test. Reports every mistake.
  Space(const JsonView& file, Problems& problems);
  Space(const Space&) = delete;
  Space& operator=(const Space&) = delete;

  /// Those of every grid, in file order.
  std::vector<const Axis*> axes() const;
  /// At least one; without "grids" in the file the one of "params".
  const std::vector<Grid>& grids() const { return grids_; }
  const std::vector<Rule>& exclude() const { return exclude_; }
  int repeats() const { return repeats_; }
  bool has_repeats() const { return repeats() > 1; }
  /// Every swept key, in file order; "repeat" last if there are repeats.
  std::vector<std::string> keys() const;

  /// Every combination of each grid. The last axis varies fastest, zipped axes move together in the position
  /// of the first of them, and repeats vary fastest of all. Drops a combination that a "when" makes equal to
  /// an earlier one, or that an earlier grid has. Adds a problem if all are excluded, and returns nothing if
  /// they are more than 100,000; `root` is the file.
  std::vector<Combination> combinations(const JsonView& root, Problems& problems) const;

  /// Reports rules with a condition on an axis that none of its values meets. An axis of another source, the
  /// command line, may have fewer values than the file's rules are for.
  void check_rules(const JsonView& base, Problems& problems) const;

  /// The combination at a point of the first grid.
  Combination combination_at(const SearchPoint& point) const;
  /// The domain that a search draws points from: the axes of the first grid. The domain keeps `self` alive.
  static SearchDomain domain_of(const std::shared_ptr<const Space>& self);

 private:
  // A condition, answered for each value of its axis and for a grid without that axis.
  struct Test {
    const Condition* condition;
    std::size_t axis;              // of its grid; kNoAxis: none has the key
    std::vector<bool> by_value{};  // of an axis with values
    bool otherwise = false;
  };
  using Tests = std::vector<Test>;  // all of them have to hold
  // The rules of one grid.
  struct GridRules {
    std::vector<std::vector<Tests>> when;  // by axis
    std::vector<Tests> exclude;            // as in exclude_
  };

  void bind_rules(const JsonView& base);
  static Tests tests_of(const std::vector<Condition>& conditions, const Grid& grid, const JsonView& base);
  // Whether there may be points of the grid at which the condition holds.
  bool can_hold(const Test& test, std::size_t grid) const;
  void check_conditions(const JsonPlace& place, const std::vector<Condition>& conditions,
                        const JsonView& base, Problems& problems) const;
  bool hold(const Tests& tests, std::size_t grid, const SearchPoint& point) const;
  bool is_active(std::size_t axis, std::size_t grid, const SearchPoint& point) const;
  const Rule* excluding(std::size_t grid, const SearchPoint& point) const;

  std::vector<Grid> grids_;
  std::vector<Rule> exclude_, when_;
  int repeats_ = 1;
  std::vector<GridRules> rules_;  // by grid
};

/// "FILE:LINE:COLUMN: exclude.0: device is cpu and batch_size is 20000".
std::string exclusion_reason(const Rule& rule);

}  // namespace sweep
