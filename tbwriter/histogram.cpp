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
#include <cstring>
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

template <class Value>
std::vector<BitsOf<Value>> make_table() {
  using Bits = BitsOf<Value>;
  constexpr int kShift = kKeyShift<Value>;
  constexpr Bits kLow = (Bits{1} << kShift) - 1, kNever = Bits{1} << (kShift + 1);
  constexpr Bits kSign = Bits{1} << (8 * sizeof(Bits) - 1);
  const auto& limits = magnitude_limits();
  const Counters index(limits.size());
  // Each limit rounded up to a Value, so that comparing with it gives the same result as comparing with the
  // limit itself. A value that equals a negative limit belongs to the bucket of smaller magnitudes, hence the
  // + 1; that happens for every limit in double, and in float only for limits that it represents exactly.
  std::vector<Bits> positive, negative;
  for (const double limit : limits) {
    Value value = static_cast<Value>(limit);
    const bool exact = static_cast<double>(value) == limit;
    if (static_cast<double>(value) < limit)
      value = std::nextafter(value, std::numeric_limits<Value>::infinity());
    positive.push_back(std::bit_cast<Bits>(value));
    negative.push_back(std::bit_cast<Bits>(value) + (exact ? 1 : 0));
  }
  for (std::vector<Bits>* side : {&positive, &negative})
    side->push_back(std::bit_cast<Bits>(std::numeric_limits<Value>::infinity()));
  const std::size_t keys = std::size_t{1} << (8 * sizeof(Bits) - kKeyShift<Value>);
  std::vector<Bits> entries;
  entries.reserve(keys);
  for (std::size_t key = 0; key < keys; ++key) {
    const Bits first = static_cast<Bits>(key) << kShift;
    const Bits sign = first & kSign;
    const std::vector<Bits>& thresholds = sign != 0 ? negative : positive;
    const auto above = std::upper_bound(thresholds.begin(), thresholds.end(), first & ~kSign);
    const bool here = above != thresholds.end() && (*above | sign) >> kShift == key;
    // The bucket is the one before `above`. That of -0.0 is the counter before the negative ones.
    const std::size_t counter = (sign != 0 ? index.negative : index.positive) +
                                static_cast<std::size_t>(above - thresholds.begin()) - 1;
    entries.push_back(table_entry<Value>(counter, here ? *above & kLow : kNever));
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
  // Compilers do not vectorise minima by themselves, because with a NaN the result depends on the order.
  using Vector [[gnu::vector_size(32)]] = Value;
  constexpr std::size_t kVector = sizeof(Vector) / sizeof(Value);
  Vector least = Vector{} + std::numeric_limits<Value>::infinity(), most = -least;
  const std::size_t whole = values.size() / kLanes * kLanes;
  for (std::size_t i = 0; i < whole; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const auto wide = static_cast<double>(values[i + lane]);
      sums[lane] += wide;
      squares[lane] += wide * wide;
    }
  }
  for (std::size_t i = 0; i < whole; i += kVector) {
    Vector some;
    std::memcpy(&some, values.data() + i, sizeof some);
    least = some < least ? some : least;
    most = some > most ? some : most;
  }
  for (std::size_t i = whole; i < values.size(); ++i) {
    const auto wide = static_cast<double>(values[i]);
    sums[0] += wide;
    squares[0] += wide * wide;
    least[0] = values[i] < least[0] ? values[i] : least[0];
    most[0] = values[i] > most[0] ? values[i] : most[0];
  }
  Sums total{.min = static_cast<double>(least[0]), .max = static_cast<double>(most[0])};
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    total.sum += sums[lane];
    total.sum_squares += squares[lane];
  }
  for (std::size_t lane = 1; lane < kVector; ++lane) {
    total.min = std::min(total.min, static_cast<double>(least[lane]));
    total.max = std::max(total.max, static_cast<double>(most[lane]));
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
