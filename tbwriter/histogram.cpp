// The limits are 0 and +-1e-12 * 1.1^n, each made from the last by one multiplication as the other writers
// do, so that the same values fall into the same buckets. A value's bucket is found from the high bits of its
// floating-point form: the numbers that share an exponent and four bits of mantissa differ by at most 1/16,
// so at most one limit lies among them, and one comparison decides.
#include "tbwriter/histogram.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
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

template <class Value>
struct Layout;
template <>
struct Layout<float> {
  using Bits = std::uint32_t;
  static constexpr int kKeyShift = 23 - 4;
};
template <>
struct Layout<double> {
  using Bits = std::uint64_t;
  static constexpr int kKeyShift = 52 - 4;
};

// Of all values with the same high bits (sign included), those whose bits are below `threshold` belong to
// counter `index`, the others to the next one.
template <class Value>
struct Step {
  typename Layout<Value>::Bits threshold;
  std::uint32_t index;
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

template <class Value>
std::vector<Step<Value>> make_steps() {
  using Bits = typename Layout<Value>::Bits;
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
  std::vector<Step<Value>> steps;
  steps.reserve(keys);
  for (std::size_t key = 0; key < keys; ++key) {
    const Bits first = static_cast<Bits>(key) << Layout<Value>::kKeyShift;
    const Bits sign = first & kSign;
    if ((first & ~kSign) >= kInfinity) {
      steps.push_back({std::numeric_limits<Bits>::max(), places.not_finite});
      continue;
    }
    if (first == kSign) {
      steps.push_back({kSign + 1, places.minus_zero});
      continue;
    }
    const std::vector<Bits>& thresholds = sign != 0 ? negative : positive;
    const auto above = std::upper_bound(thresholds.begin(), thresholds.end(), first & ~kSign);
    const auto bucket = static_cast<std::uint32_t>(above - thresholds.begin() - 1);
    // The largest bits are those of a NaN, which has a key of its own.
    steps.push_back({above == thresholds.end() ? std::numeric_limits<Bits>::max() : *above | sign,
                     bucket + (sign != 0 ? places.negative : places.positive)});
  }
  return steps;
}

struct Sums {
  double sum = 0, sum_squares = 0, min = 0, max = 0;
};

// Eight partial results, so that the compiler can use vectors. The extremes are right if all values are
// finite.
template <class Value>
Sums add_up(std::span<const Value> values) {
  constexpr std::size_t kLanes = 8;
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
  std::size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) add(lane, values[i + lane]);
  }
  for (; i < values.size(); ++i) add(0, values[i]);
  Sums total{.min = static_cast<double>(*std::ranges::min_element(least)),
             .max = static_cast<double>(*std::ranges::max_element(most))};
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    total.sum += sums[lane];
    total.sum_squares += squares[lane];
  }
  return total;
}

template <class Value>
Histogram count(std::span<const Value> values) {
  using Bits = typename Layout<Value>::Bits;
  static const std::vector<Step<Value>> steps = make_steps<Value>();
  const auto& limits = magnitude_limits();
  const std::size_t side = limits.size();
  const Places places(side);

  // Two sets of counters, so that equal neighbours do not wait for each other.
  std::vector<std::uint32_t> counters(places.count), others(places.count);
  const Step<Value>* const table = steps.data();
  const auto add = [table](Value value, std::uint32_t* set) {
    const Bits bits = std::bit_cast<Bits>(value);
    const Step<Value>& step = table[bits >> Layout<Value>::kKeyShift];
    ++set[step.index + (bits >= step.threshold ? 1u : 0u)];
  };
  std::size_t i = 0;
  for (; i + 2 <= values.size(); i += 2) {
    add(values[i], counters.data());
    add(values[i + 1], others.data());
  }
  if (i < values.size()) add(values[i], counters.data());
  for (std::size_t k = 0; k < counters.size(); ++k) counters[k] += others[k];
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
  for (std::size_t k = first; k <= last; ++k) {
    double right;
    if (k < side) {
      right = k + 1 < side ? -limits[side - 1 - k] : 0.0;
    } else {
      right = k - side + 1 < side ? limits[k - side + 1] : std::max(kLargestLimit, histogram.max);
    }
    histogram.limits.push_back(right);
    histogram.counts.push_back(static_cast<double>(at(k)));
  }
  return histogram;
}

}  // namespace

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
