// The limits are 0 and ±1e-12 · 1.1^n. Each is computed from the previous one with one multiplication, as the
// other writers do, so that values fall into exactly the same buckets.
//
// The bucket of a value is looked up, not searched. All numbers that share sign, exponent and the upper four
// bits of the mantissa (the key) lie within 1/16 of each other, less than the factor 1.1 between limits, so
// at most one limit is among them: the low bits of the mantissa decide between two neighbouring buckets. The
// table has one entry per key, built so that adding the low bits to it carries into the bucket's index
// exactly if the limit is reached: a load, an addition and a shift per value, without a branch.
#include "tbwriter/histogram.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <type_traits>

namespace sweep::tbwriter {
namespace {

constexpr double kSmallestLimit = 1e-12, kLargestLimit = 1e20, kGrowth = 1.1;  // as in TensorFlow

// 0, then the positive limits. Magnitude m is in bucket i if limits[i] <= m < limits[i + 1].
const std::vector<double>& magnitude_limits() {
  static const std::vector<double> limits = [] {
    std::vector<double> result{0.0};
    for (double limit = kSmallestLimit; limit < kLargestLimit; limit *= kGrowth) result.push_back(limit);
    return result;
  }();
  return limits;
}

// The upper limit of bucket k, counted from the most negative one; `max` is the largest value.
double right_end(std::size_t k, double max) {
  const auto& limits = magnitude_limits();
  const std::size_t side = limits.size();
  if (k < side) return k + 1 < side ? -limits[side - 1 - k] : 0.0;
  return k - side + 1 < side ? limits[k - side + 1] : std::max(kLargestLimit, max);
}

// The bits of a floating-point number. The low kKeyShift ones are not part of the key.
template <class Value>
using BitsOf = std::conditional_t<sizeof(Value) == 4, std::uint32_t, std::uint64_t>;
template <class Value>
constexpr int kKeyShift = std::numeric_limits<Value>::digits - 1 - 4;

// Where the counters are: one for -0.0, which belongs to the positive side although its sign bit is set; the
// negative buckets by magnitude, and one for negative values that are not finite; the same for positive ones.
struct Counters {
  std::size_t buckets, negative, positive, count;  // buckets: of one side
  explicit Counters(std::size_t side)
      : buckets(side), negative(1), positive(negative + side + 1), count(positive + side + 1) {}
};

// The table's entry for one key: values whose low bits are below `threshold` belong to counter `index`, the
// others to index + 1. The index is stored above kKeyShift + 1 bits, which hold the difference of `threshold`
// to their carry; one bit more than the low bits have, so that a threshold above all of them never carries.
template <class Value>
BitsOf<Value> table_entry(std::size_t index, BitsOf<Value> threshold) {
  using Bits = BitsOf<Value>;
  constexpr Bits kCarry = Bits{1} << (kKeyShift<Value> + 1);
  return static_cast<Bits>(index) * kCarry + (kCarry - threshold);
}

// The counter of a value. One that equals a negative limit belongs to the bucket of smaller magnitudes; hence
// -0.0 to the counter before the negative ones.
template <class Value>
std::size_t counter_of(Value value, const Counters& index) {
  const auto& limits = magnitude_limits();
  const double magnitude = std::abs(static_cast<double>(value));
  const bool is_negative = std::signbit(value);
  const std::size_t first = is_negative ? index.negative : index.positive;
  if (!std::isfinite(value)) return first + index.buckets;
  const auto above =
      is_negative ? std::ranges::lower_bound(limits, magnitude) : std::ranges::upper_bound(limits, magnitude);
  return first + static_cast<std::size_t>(above - limits.begin()) - 1;
}

template <class Value>
std::vector<BitsOf<Value>> make_table() {
  using Bits = BitsOf<Value>;
  constexpr Bits kLows = Bits{1} << kKeyShift<Value>;
  const Counters index(magnitude_limits().size());
  std::vector<Bits> entries(std::size_t{1} << (8 * sizeof(Bits) - kKeyShift<Value>));
  for (std::size_t key = 0; key < entries.size(); ++key) {
    const auto counter_at = [&](Bits low) {
      return counter_of(std::bit_cast<Value>(static_cast<Bits>(key) * kLows + low), index);
    };
    const std::size_t counter = counter_at(0);
    Bits below = 0, threshold = kLows - 1;
    if (counter_at(threshold) == counter) below = threshold = 2 * kLows;  // never
    while (threshold - below > 1) {
      const Bits middle = below + (threshold - below) / 2;
      (counter_at(middle) == counter ? below : threshold) = middle;
    }
    entries[key] = table_entry<Value>(counter, threshold);
  }
  return entries;
}

// Sums and extremes of an array.
struct Sums {
  double sum = 0, sum_squares = 0, min = 0, max = 0;
};

// Sixteen partial sums, so that the compiler can vectorise and additions do not wait for each other; their
// order is fixed. The extremes are correct only if all values are finite.
template <class Value>
[[gnu::always_inline]] inline Sums sum_up_lanes(std::span<const Value> values) {
  constexpr std::size_t kLanes = 16;
  std::array<double, kLanes> sums{}, squares{};
  std::array<Value, kLanes> least, most;
  least.fill(std::numeric_limits<Value>::infinity());
  most.fill(-std::numeric_limits<Value>::infinity());
  const auto add = [&](std::size_t lane, Value value) {
    const auto wide = static_cast<double>(value);
    sums[lane] += wide;
    squares[lane] += wide * wide;
    least[lane] = value < least[lane] ? value : least[lane];
    most[lane] = value > most[lane] ? value : most[lane];
  };
  for (; values.size() >= kLanes; values = values.subspan(kLanes)) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) add(lane, values[lane]);
  }
  for (const Value value : values) add(0, value);
  Sums total{.min = static_cast<double>(std::ranges::min(least)),
             .max = static_cast<double>(std::ranges::max(most))};
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    total.sum += sums[lane];
    total.sum_squares += squares[lane];
  }
  return total;
}

#if defined(__x86_64__)
// AVX2 without FMA, so that the sums have the same bits as without AVX2.
template <class Value>
[[gnu::target("avx2")]] Sums sum_up_avx2(std::span<const Value> values) {
  return sum_up_lanes(values);
}
const bool kAvx2 = __builtin_cpu_supports("avx2") != 0;
#endif

template <class Value>
Sums sum_up(std::span<const Value> values) {
#if defined(__x86_64__)
  if (kAvx2) return sum_up_avx2(values);
#endif
  return sum_up_lanes(values);
}

template <class Value>
Histogram count(std::span<const Value> values) {
  using Bits = BitsOf<Value>;
  constexpr int kShift = kKeyShift<Value>;
  constexpr Bits kLow = (Bits{1} << kShift) - 1;
  static const std::vector<Bits> entries = make_table<Value>();
  const Counters index(magnitude_limits().size());

  // Two sets of counters, so that equal neighbours do not increment the same counter one after the other.
  constexpr std::size_t kSets = 2;
  std::vector<std::uint32_t> counters(kSets * index.count);
  const Bits* const table = entries.data();
  const auto add = [table](Value value, std::uint32_t* set) {
    const Bits bits = std::bit_cast<Bits>(value);
    ++set[(table[bits >> kShift] + (bits & kLow)) >> (kShift + 1)];
  };
  std::size_t i = 0;
  for (; i + kSets <= values.size(); i += kSets) {
    for (std::size_t set = 0; set < kSets; ++set) add(values[i + set], counters.data() + set * index.count);
  }
  for (; i < values.size(); ++i) add(values[i], counters.data());
  for (std::size_t k = 0; k < index.count; ++k) counters[k] += counters[index.count + k];
  counters[index.positive] += counters[0];

  Histogram histogram;
  histogram.number = static_cast<double>(values.size());
  Sums sums = sum_up(values);
  histogram.sum = sums.sum;
  histogram.sum_squares = sums.sum_squares;
  const std::size_t not_finite =
      counters[index.negative + index.buckets] + counters[index.positive + index.buckets];
  if (not_finite == values.size()) return histogram;
  if (not_finite != 0) {
    std::vector<Value> finite;
    std::ranges::copy_if(values, std::back_inserter(finite),
                         [](Value value) { return std::isfinite(value); });
    sums = sum_up(std::span<const Value>(finite));
  }
  histogram.min = sums.min;
  histogram.max = sums.max;

  // From the most negative bucket to the most positive one.
  const std::size_t most = 2 * std::min(index.buckets, values.size());
  histogram.limits.reserve(most);
  histogram.counts.reserve(most);
  std::uint32_t before = 1;
  const auto append = [&](std::size_t k, std::uint32_t bucket) {
    if (bucket != 0) {
      // Only the last of some empty buckets: Histogram::append() would merge them.
      if (before == 0) histogram.append(right_end(k - 1, histogram.max), 0);
      histogram.append(right_end(k, histogram.max), static_cast<double>(bucket));
    }
    before = bucket;
  };
  const std::size_t side = index.buckets;
  for (std::size_t k = 0; k < side; ++k) append(k, counters[index.negative + side - 1 - k]);
  for (std::size_t k = side; k < 2 * side; ++k) append(k, counters[index.positive + k - side]);
  return histogram;
}

}  // namespace

std::vector<double> histogram_limits(double max) {
  std::vector<double> limits;
  for (std::size_t k = 0; k < 2 * magnitude_limits().size(); ++k) limits.push_back(right_end(k, max));
  return limits;
}

Histogram make_histogram(const Values& values) {
  const auto count_as = [&values]<class Value>(Value) {
    return count(std::span<const Value>(converted<Value>(values)));
  };
  return std::visit(
      [&]<class Number>(std::span<const Number> numbers) {
        if constexpr (std::is_floating_point_v<Number>) return count(numbers);
        if constexpr (std::is_integral_v<Number>) return count_as(double{});
        return count_as(float{});
      },
      values);
}

}  // namespace sweep::tbwriter
