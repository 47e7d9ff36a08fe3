// The values of a dimension as numbers from 0 to 1.
#pragma once

#include <cstddef>
#include <optional>

#include "runmanager/search/search_space.h"

namespace sweep {

/// What a discrete value covers of [0, 1].
struct UnitCell {
  double low = 0, high = 1;
};

/// Maps a dimension to [0, 1] such that equal lengths are equally likely. A value, thread-safe. The dimension
/// has to pass check_domain().
class UnitScale {
 public:
  explicit UnitScale(const Dimension& dimension);

  /// Whether near numbers stand for values that are alike: not so of choices without an order.
  bool has_order() const { return has_order_; }
  /// How many values there are; 0: infinitely many.
  std::size_t count() const { return count_; }
  /// Whether values are so many that their cells are as good as points.
  bool is_continuous() const { return count_ == 0 || count_ > 1'000'000; }

  /// From [0, 1] to the nearest value, rounded as rounded() does; of finitely many the one whose cell it is
  /// in.
  double value(double unit) const;
  /// Value number `index` of count(), rising.
  double value_at(std::size_t index) const { return first_ + static_cast<double>(index); }
  /// The number of a value of finitely many; values beyond the ends count as the ends.
  std::size_t index_of(double value) const;
  /// From a value to [0, 1]: of finitely many the middle of its cell; beyond the ends the ends.
  double unit(double value) const;
  /// Of finitely many values: what one covers, and what the one at a place covers.
  UnitCell cell(double value) const;
  UnitCell cell_at(double unit) const { return cell(value(unit)); }

 private:
  double scaled(double value) const;

  Dimension dimension_;
  bool logarithmic_, has_order_;
  std::size_t count_ = 0;
  double first_ = 0;    // the least of finitely many values
  double start_, end_;  // 0 and 1, on the dimension's scale
};

}  // namespace sweep
