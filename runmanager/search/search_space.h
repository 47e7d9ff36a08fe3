// The space that a search looks for good points in: dimensions and their scales, conditions, and what is left
// out; and the random numbers that points are drawn by.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/random.h"

namespace sweep {

enum class DimensionKind {
  kUniform,     // any number
  kLogUniform,  // any number, its logarithm is uniform
  kInteger,
  kLogInteger,
  kChoice,
};

constexpr bool has_integers(DimensionKind kind) {
  return kind == DimensionKind::kInteger || kind == DimensionKind::kLogInteger;
}
constexpr bool is_logarithmic(DimensionKind kind) {
  return kind == DimensionKind::kLogUniform || kind == DimensionKind::kLogInteger;
}

/// One thing that is searched. It has values: the ends and their distance are finite, low <= high, low > 0 on
/// a logarithmic scale, 1 to 2^53 whole numbers, or choices.
struct Dimension {
  DimensionKind kind = DimensionKind::kUniform;
  double low = 0, high = 0;  // the ends, which are part of it; of kChoice unused
  std::size_t choices = 0;   // of kChoice: values are the indices 0 .. choices - 1; else unused
  bool ordered = false;      // kChoice: the choices are in an order in which neighbours behave alike
};

/// A value per dimension, in their order; none where the dimension does not exist in this point. Of kChoice
/// the index, of integers a whole number, of others a decimal number with few digits, see rounded().
using SearchPoint = std::vector<std::optional<double>>;

/// Both functions have to be pure and safe to call from several threads if the domain is used by several.
struct SearchDomain {
  std::vector<Dimension> dimensions;

  /// Whether dimension `d` exists in `point`, which has all values except those that are known not to exist.
  /// Called again with fewer values until nothing changes: a dimension that does not exist must not exist
  /// with fewer values either, and must not depend on itself. Empty: all always exist.
  std::function<bool(const SearchPoint& point, std::size_t d)> is_active{};

  /// false: the point, which is complete as for an Observation, is left out of the search. Empty: none is.
  std::function<bool(const SearchPoint& point)> is_allowed{};
};

/// Returns the nearest value that a search proposes. kInteger and kLogInteger: a whole number. kUniform: a
/// multiple of the power of ten that divides the range into 10^4 to 10^5 steps. kLogUniform: three
/// significant digits, or more if the ends are less than a factor of 50 apart. Values are those of their
/// decimal text, and never outside the ends. `value` has to be finite.
double rounded(const Dimension& dimension, double value);

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

/// Takes away the values of dimensions that do not exist, see SearchDomain::is_active. `point` has all
/// values.
SearchPoint without_inactive(const SearchDomain& domain, SearchPoint point);

/// Whether there are finitely many values and at most 10^6 combinations of them, with those that do not
/// differ because of conditions or are left out.
bool is_enumerable(const SearchDomain& domain);

/// Calls `use` with the indices of each element of a product, the last index varying fastest: counts like an
/// odometer. Without extents the product has one element.
template <typename Use>
void for_each_product(const std::vector<std::size_t>& extents, const Use& use) {
  std::vector<std::size_t> indices(extents.size(), 0);
  for (;;) {
    use(indices);
    std::size_t d = extents.size();
    while (d > 0 && ++indices[d - 1] == extents[d - 1]) indices[--d] = 0;
    if (d == 0) return;
  }
}

/// Each point of an enumerable space once, the last dimension varying fastest; without those that are left
/// out.
std::vector<SearchPoint> all_points(const SearchDomain& domain);

/// What a trial's random numbers are for, so that each use has its own.
enum class SearchDraw : std::uint32_t { kStart, kPoint, kCandidate, kCopy };

/// The numbers of (seed, trial, use). Not thread-safe.
class UnitRandom {
 public:
  UnitRandom(std::uint64_t seed, std::size_t trial, SearchDraw use)
      : stream_(seed, RandomUse::kSearch, static_cast<std::uint32_t>(trial),
                static_cast<std::uint32_t>(use)) {}

  /// Uniform in (0, 1), 52 bits.
  double unit() {
    const auto high = static_cast<std::uint64_t>(stream_.next_u32() >> 6),
               low = std::uint64_t{stream_.next_u32() >> 6};
    return (static_cast<double>(high << 26 | low) + 0.5) * 0x1p-52;
  }

  /// Uniform in [0, bound), 1 <= bound < 2^32.
  std::size_t below(std::size_t bound) { return stream_.below(static_cast<std::uint32_t>(bound)); }

  /// A number of mean 0 and deviation 1: the polar method of Marsaglia and Bray.
  double normal() {
    double x, y, square;
    do {
      x = 2 * unit() - 1;
      y = 2 * unit() - 1;
      square = x * x + y * y;
    } while (square >= 1);
    return x * std::sqrt(-2 * std::log(square) / square);
  }

 private:
  RandomStream stream_;
};

}  // namespace sweep
