// The limits are 0 and +-1e-12 * 1.1^n, each made from the last by one multiplication as the other writers
// do, so that the same values fall into the same buckets. A value's bucket is found from the high bits of its
// floating-point form: the numbers that share an exponent and four bits of mantissa differ by at most 1/16,
// so at most one limit lies among them. A table has, for those high bits, a number to which the low bits are
// added: the sum's upper part is the bucket, into which it carries if the limit is reached. One load and one
// addition decide.
#include "tbwriter/histogram.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <limits>

namespace sweep::tbwriter {
namespace {

constexpr double kSmallestLimit = 1e-12, kLargestLimit = 1e20, kGrowth = 1.1;

// 0, then the positive limits; magnitude m lies in bucket i if limits[i] <= m < limits[i + 1].
const std::vector<double>& magnitude_limits() {
  static const std::vector<double> limits = [] {
    std::vector<double> result{0.0};
    for (double limit = kSmallestLimit; limit < kLargestLimit; limit *= kGrowth) result.push_back(limit);
    return result;
  }();
  return limits;
}

// Of bucket k, from the most negative one on, where the largest value is `max`.
double right_end(std::size_t k, double max) {
  const auto& limits = magnitude_limits();
  const std::size_t side = limits.size();
  if (k < side) return k + 1 < side ? -limits[side - 1 - k] : 0.0;
  return k - side + 1 < side ? limits[k - side + 1] : std::max(kLargestLimit, max);
}

template <class Value>
struct Layout;
template <>
struct Layout<float> {
  using Bits = std::uint32_t;
  static constexpr int kKeyShift = 23 - 4;  // the low bits; the others choose the table's entry
};
template <>
struct Layout<double> {
  using Bits = std::uint64_t;
  static constexpr int kKeyShift = 52 - 4;
};

// Counters: negative buckets by magnitude, positive ones, then -0.0, negative values that share its high
// bits, and whatever is not finite.
struct Places {
  std::uint32_t negative = 0, positive, minus_zero, after_minus_zero, not_finite, count;
  explicit Places(std::size_t side)
      : positive(static_cast<std::uint32_t>(side)),
        minus_zero(2 * positive),
        after_minus_zero(minus_zero + 1),
        not_finite(minus_zero + 2),
        count(minus_zero + 3) {}
};

// Entry of the values whose high bits are the same: those whose low bits are below `threshold` belong to
// counter `index`, the others to the next one. Sum of entry and low bits: index above one bit more than the
// low ones.
template <class Value>
typename Layout<Value>::Bits step(std::uint32_t index, typename Layout<Value>::Bits threshold) {
  using Bits = typename Layout<Value>::Bits;
  constexpr Bits kCarry = Bits{1} << (Layout<Value>::kKeyShift + 1);
  return index * kCarry + (kCarry - threshold);
}

template <class Value>
std::vector<typename Layout<Value>::Bits> make_steps() {
  using Bits = typename Layout<Value>::Bits;
  constexpr int kShift = Layout<Value>::kKeyShift;
  constexpr Bits kLow = (Bits{1} << kShift) - 1, kNever = Bits{1} << (kShift + 1);
  constexpr Bits kSign = Bits{1} << (8 * sizeof(Bits) - 1);
  constexpr Bits kInfinity = std::bit_cast<Bits>(std::numeric_limits<Value>::infinity());
  const auto& limits = magnitude_limits();
  const Places places(limits.size());
  // The smallest Value that is not less than a limit, so that comparing Values equals comparing with the
  // limit. A negative limit belongs to the bucket of smaller magnitudes; no float but 0 is a limit, but all
  // doubles are.
  std::vector<Bits> positive, negative;
  for (const double limit : limits) {
    Value value = static_cast<Value>(limit);
    const bool exact = static_cast<double>(value) == limit;
    if (static_cast<double>(value) < limit)
      value = std::nextafter(value, std::numeric_limits<Value>::infinity());
    positive.push_back(std::bit_cast<Bits>(value));
    negative.push_back(std::bit_cast<Bits>(value) + (exact && limit != 0 ? 1 : 0));
  }
  const std::size_t keys = std::size_t{1} << (8 * sizeof(Bits) - Layout<Value>::kKeyShift);
  std::vector<Bits> steps;
  steps.reserve(keys);
  for (std::size_t key = 0; key < keys; ++key) {
    const Bits first = static_cast<Bits>(key) << kShift;
    const Bits sign = first & kSign;
    if ((first & ~kSign) >= kInfinity) {
      steps.push_back(step<Value>(places.not_finite, kNever));
      continue;
    }
    if (first == kSign) {
      steps.push_back(step<Value>(places.minus_zero, 1));
      continue;
    }
    const std::vector<Bits>& thresholds = sign != 0 ? negative : positive;
    const auto above = std::upper_bound(thresholds.begin(), thresholds.end(), first & ~kSign);
    const auto bucket = static_cast<std::uint32_t>(above - thresholds.begin() - 1);
    const bool here = above != thresholds.end() && (*above | sign) >> kShift == key;
    steps.push_back(
        step<Value>(bucket + (sign != 0 ? places.negative : places.positive), here ? *above & kLow : kNever));
  }
  return steps;
}

struct Sums {
  double sum = 0, sum_squares = 0, min = 0, max = 0;
};

// Sixteen partial results, so that the compiler can use vectors, and none waits for the one before. The
// extremes are right if all values are finite.
template <class Value>
[[gnu::always_inline]] inline Sums add_up_lanes(std::span<const Value> values) {
  constexpr std::size_t kLanes = 16;
  std::array<double, kLanes> sums{}, squares{};
  // Compilers do not use vectors for these by themselves, since a NaN makes a minimum depend on the order.
  using Few [[gnu::vector_size(32)]] = Value;
  constexpr std::size_t kFew = sizeof(Few) / sizeof(Value);
  Few least = Few{} + std::numeric_limits<Value>::infinity(), most = -least;
  const std::size_t whole = values.size() / kLanes * kLanes;
  for (std::size_t i = 0; i < whole; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const auto wide = static_cast<double>(values[i + lane]);
      sums[lane] += wide;
      squares[lane] += wide * wide;
    }
  }
  for (std::size_t i = 0; i < whole; i += kFew) {
    Few some;
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
  for (std::size_t lane = 1; lane < kFew; ++lane) {
    total.min = std::min(total.min, static_cast<double>(least[lane]));
    total.max = std::max(total.max, static_cast<double>(most[lane]));
  }
  return total;
}

#if defined(__x86_64__)
// Without FMA, so that sums are the same on every machine.
template <class Value>
[[gnu::target("avx2")]] Sums add_up_avx2(std::span<const Value> values) {
  return add_up_lanes(values);
}
const bool kAvx2 = __builtin_cpu_supports("avx2") != 0;
#endif

template <class Value>
Sums add_up(std::span<const Value> values) {
#if defined(__x86_64__)
  if (kAvx2) return add_up_avx2(values);
#endif
  return add_up_lanes(values);
}

template <class Value>
Histogram count(std::span<const Value> values) {
  using Bits = typename Layout<Value>::Bits;
  constexpr int kShift = Layout<Value>::kKeyShift;
  constexpr Bits kLow = (Bits{1} << kShift) - 1;
  static const std::vector<Bits> steps = make_steps<Value>();
  const auto& limits = magnitude_limits();
  const std::size_t side = limits.size();
  const Places places(side);

  // Two sets of counters, so that equal neighbours do not wait for each other.
  constexpr std::size_t kSets = 2;
  std::vector<std::uint32_t> counters(kSets * places.count);
  const Bits* const table = steps.data();
  const auto add = [table](Value value, std::uint32_t* set) {
    const Bits bits = std::bit_cast<Bits>(value);
    ++set[(table[bits >> kShift] + (bits & kLow)) >> (kShift + 1)];
  };
  std::size_t i = 0;
  for (; i + kSets <= values.size(); i += kSets) {
    for (std::size_t set = 0; set < kSets; ++set) add(values[i + set], counters.data() + set * places.count);
  }
  for (; i < values.size(); ++i) add(values[i], counters.data());
  for (std::size_t set = 1; set < kSets; ++set) {
    for (std::size_t k = 0; k < places.count; ++k) counters[k] += counters[set * places.count + k];
  }
  counters[places.positive] += counters[places.minus_zero];
  counters[places.negative] += counters[places.after_minus_zero];

  Histogram histogram;
  histogram.number = static_cast<double>(values.size());
  Sums sums = add_up(values);
  histogram.sum = sums.sum;
  histogram.sum_squares = sums.sum_squares;
  const std::size_t not_finite = counters[places.not_finite];
  if (not_finite == values.size()) return histogram;
  if (not_finite != 0) {
    std::vector<Value> finite;
    std::ranges::copy_if(values, std::back_inserter(finite),
                         [](Value value) { return std::isfinite(value); });
    sums = add_up(std::span<const Value>(finite));
  }
  histogram.min = sums.min;
  histogram.max = sums.max;

  // From the most negative bucket to the most positive one.
  const auto at = [&](std::size_t k) { return counters[k < side ? side - 1 - k : k]; };
  std::size_t first = 0, last = 2 * side - 1;
  while (at(first) == 0) ++first;
  while (at(last) == 0) --last;
  histogram.limits.reserve(last + 1 - first);
  histogram.counts.reserve(last + 1 - first);
  for (std::size_t k = first; k <= last; ++k) {
    histogram.limits.push_back(right_end(k, histogram.max));
    histogram.counts.push_back(static_cast<double>(at(k)));
  }
  return histogram;
}

}  // namespace

std::vector<double> histogram_limits(double max) {
  std::vector<double> limits;
  for (std::size_t k = 0; k < 2 * magnitude_limits().size(); ++k) limits.push_back(right_end(k, max));
  return limits;
}

Histogram make_histogram(std::span<const float> values) { return count(values); }
Histogram make_histogram(std::span<const double> values) { return count(values); }

Histogram make_histogram(Values values) {
  const auto in_place = [&]<class Number>(Number) {
    return std::span(reinterpret_cast<const Number*>(values.bytes().data()), values.count());
  };
  switch (values.type()) {
    case ValueType::kFloat:
      return count(in_place(float{}));
    case ValueType::kDouble:
      return count(in_place(double{}));
    case ValueType::kInt64: {
      const auto integers = in_place(std::int64_t{});
      return count(std::span<const double>(std::vector<double>(integers.begin(), integers.end())));
    }
    default:
      break;
  }
  std::vector<float> floats(values.count());
  if (values.type() == ValueType::kHalf) {
    std::ranges::transform(in_place(Half{}), floats.begin(), [](Half value) { return to_float(value); });
  } else {
    std::ranges::transform(in_place(BFloat16{}), floats.begin(),
                           [](BFloat16 value) { return to_float(value); });
  }
  return count(std::span<const float>(floats));
}

}  // namespace sweep::tbwriter
