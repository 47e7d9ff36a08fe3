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
#include <limits>
#include <type_traits>

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

// For magnitudes as bits: of all with the same key, those below `threshold` are in `bucket`, the others one
// further.
template <class Value>
struct Step {
  typename Layout<Value>::Bits threshold;
  std::uint32_t bucket;
};

template <class Value>
std::vector<Step<Value>> make_steps() {
  using Bits = typename Layout<Value>::Bits;
  const auto& limits = magnitude_limits();
  // The smallest Value that is not less than a limit, so that comparing Values equals comparing with the
  // limit.
  std::vector<Bits> thresholds;
  for (const double limit : limits) {
    Value value = static_cast<Value>(limit);
    if (static_cast<double>(value) < limit)
      value = std::nextafter(value, std::numeric_limits<Value>::infinity());
    thresholds.push_back(std::bit_cast<Bits>(value));
  }
  const std::size_t keys = std::size_t{1} << (8 * sizeof(Bits) - 1 - Layout<Value>::kKeyShift);
  std::vector<Step<Value>> steps;
  steps.reserve(keys);
  for (std::size_t key = 0; key < keys; ++key) {
    const Bits first = static_cast<Bits>(key) << Layout<Value>::kKeyShift;
    const auto above = std::upper_bound(thresholds.begin(), thresholds.end(), first);
    const auto bucket = static_cast<std::uint32_t>(above - thresholds.begin() - 1);
    steps.push_back({above == thresholds.end() ? std::numeric_limits<Bits>::max() : *above, bucket});
  }
  return steps;
}

struct Sums {
  double sum = 0, sum_squares = 0;
};

// Eight partial sums, so that the compiler can use vectors.
template <class Value>
Sums add_up(std::span<const Value> values) {
  std::array<double, 8> sums{}, squares{};
  std::size_t i = 0;
  for (; i + 8 <= values.size(); i += 8) {
    for (std::size_t k = 0; k < 8; ++k) {
      const auto value = static_cast<double>(values[i + k]);
      sums[k] += value;
      squares[k] += value * value;
    }
  }
  Sums total;
  for (std::size_t k = 0; k < 8; ++k) {
    total.sum += sums[k];
    total.sum_squares += squares[k];
  }
  for (; i < values.size(); ++i) {
    const auto value = static_cast<double>(values[i]);
    total.sum += value;
    total.sum_squares += value * value;
  }
  return total;
}

// Signed magnitudes as bits sort like the values, so the extremes need no floating-point comparison either.
template <class Value>
Histogram count(std::span<const Value> values) {
  using Bits = typename Layout<Value>::Bits;
  static const std::vector<Step<Value>> steps = make_steps<Value>();
  constexpr Bits kSign = Bits{1} << (8 * sizeof(Bits) - 1);
  constexpr Bits kInfinity = std::bit_cast<Bits>(std::numeric_limits<Value>::infinity());
  const auto& limits = magnitude_limits();
  const std::size_t side = limits.size();

  // Two sets of counters, so that equal neighbours do not wait for each other. Negative, then positive
  // buckets.
  std::vector<std::uint32_t> counters(4 * side);
  Value smallest = std::numeric_limits<Value>::infinity(), largest = -std::numeric_limits<Value>::infinity();
  std::size_t finite = 0;
  const auto add = [&](Value value, std::size_t set) {
    const Bits bits = std::bit_cast<Bits>(value);
    const Bits magnitude = bits & ~kSign;
    if (magnitude >= kInfinity) return;
    smallest = std::min(smallest, value);
    largest = std::max(largest, value);
    const bool negative = bits > kSign;  // -0.0 is not less than 0.
    // A negative limit belongs to the bucket of smaller magnitudes. No float is a limit, but doubles are.
    const Bits place = std::is_same_v<Value, double> && negative ? magnitude - 1 : magnitude;
    const Step<Value>& step = steps[place >> Layout<Value>::kKeyShift];
    const std::size_t bucket = step.bucket + (place >= step.threshold ? 1u : 0u);
    ++counters[(set * 2 + (negative ? 0u : 1u)) * side + bucket];
    ++finite;
  };
  std::size_t i = 0;
  for (; i + 2 <= values.size(); i += 2) {
    add(values[i], 0);
    add(values[i + 1], 1);
  }
  if (i < values.size()) add(values[i], 0);

  Histogram histogram;
  histogram.number = static_cast<double>(values.size());
  const Sums sums = add_up(values);
  histogram.sum = sums.sum;
  histogram.sum_squares = sums.sum_squares;
  if (finite == 0) return histogram;
  histogram.min = static_cast<double>(smallest);
  histogram.max = static_cast<double>(largest);

  // From the most negative bucket to the most positive one.
  const auto total = [&](std::size_t sign, std::size_t bucket) {
    return counters[sign * side + bucket] + counters[(2 + sign) * side + bucket];
  };
  std::size_t first = 2 * side, last = 0;
  const auto at = [&](std::size_t k) { return k < side ? total(0, side - 1 - k) : total(1, k - side); };
  for (std::size_t k = 0; k < 2 * side; ++k) {
    if (at(k) == 0) continue;
    first = std::min(first, k);
    last = k;
  }
  for (std::size_t k = first; k <= last; ++k) {
    double right;
    if (k < side) {
      right = -limits[side - 1 - k];
    } else {
      right = k - side + 1 < side ? limits[k - side + 1] : std::max(kLargestLimit, histogram.max);
    }
    histogram.limits.push_back(right == 0 ? 0.0 : right);
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
