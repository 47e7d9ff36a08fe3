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

/// Maps a dimension to [0, 1] such that equal lengths are equally likely. A value, thread-safe.
class UnitScale {
 public:
  explicit UnitScale(const Dimension& dimension);

  /// Whether near numbers mean similar values; false for choices without an order.
  bool has_order() const { return has_order_; }
  /// The number of values; 0: infinitely many.
  std::size_t count() const { return count_; }
  /// Whether there are enough values to treat their cells as points.
  bool is_continuous() const { return count_ == 0 || count_ > 1'000'000; }

  /// Maps [0, 1] to the nearest value, rounded as rounded() does; if there are finitely many, to the one
  /// whose cell `unit` is in.
  double value(double unit) const;
  /// Value number `index` of count(), rising.
  double value_at(std::size_t index) const { return first_ + static_cast<double>(index); }
  /// Returns the number of a value, if there are finitely many; values beyond the ends count as the ends.
  std::size_t index_of(double value) const;
  /// Maps a value to [0, 1]: to the middle of its cell if there are finitely many; values beyond the ends
  /// count as the ends.
  double unit(double value) const;
  /// The cell of a value, if there are finitely many.
  UnitCell cell(double value) const;

 private:
  double scaled(double value) const;

  Dimension dimension_;
  bool logarithmic_, has_order_;
  std::size_t count_ = 0;
  double first_ = 0;    // the least of finitely many values
  double start_, end_;  // 0 and 1, on the dimension's scale
};

}  // namespace sweep
