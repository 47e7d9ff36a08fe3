// Histograms with the buckets of TensorFlow and PyTorch; below them those of numpy, and of the caller.
//
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
#include <string>
#include <type_traits>

#include "tbwriter/error.h"

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

constexpr double kMaxBuckets = 100'000;  // more than a person or a browser can use

// numpy.percentile(): linear between the two nearest values. `sorted` is not empty. This and the width of kFd
// round as numpy does for float64: a last bit of a width can be one more bucket.
double percentile(const std::vector<double>& sorted, double part) {
  const double at = part * static_cast<double>(sorted.size() - 1);
  const auto index = static_cast<std::size_t>(at);
  const double below = sorted[index], above = sorted[std::min(index + 1, sorted.size() - 1)];
  const double share = at - static_cast<double>(index);
  return share < 0.5 ? below + (above - below) * share : above - (above - below) * (1 - share);
}

double doane_width(const std::vector<double>& sorted, double n, double range) {
  double mean = 0, variance = 0, skewness = 0;
  for (const double value : sorted) mean += value / n;
  for (const double value : sorted) variance += (value - mean) * (value - mean) / n;
  const double sigma = std::sqrt(variance);
  if (n <= 2 || !(sigma > 0)) return 0;
  for (const double value : sorted) skewness += std::pow((value - mean) / sigma, 3) / n;
  const double spread = std::sqrt(6 * (n - 2) / ((n + 1) * (n + 3)));
  return range / (1 + std::log2(n) + std::log2(1 + std::abs(skewness) / spread));
}

double width_of(const std::vector<double>& sorted, HistogramBins bins) {
  const auto n = static_cast<double>(sorted.size());
  const double range = sorted.back() - sorted.front(), sturges = range / (std::log2(n) + 1);
  const double fd = 2 * (percentile(sorted, 0.75) - percentile(sorted, 0.25)) * std::pow(n, -1.0 / 3.0);
  switch (bins) {
    case HistogramBins::kFd:
      return fd;
    case HistogramBins::kDoane:
      return doane_width(sorted, n, range);
    case HistogramBins::kSturges:
      return sturges;
    case HistogramBins::kAuto:
      break;
  }
  return std::min(std::max(fd, range / std::sqrt(n) / 2), sturges);
}

void check(const Histogram& given) {
  const bool grows = std::ranges::adjacent_find(given.limits, [](double left, double right) {
                       return !(left < right);  // also where one of them is NaN
                     }) == given.limits.end();
  const bool has_nan = std::ranges::any_of(given.limits, [](double limit) { return std::isnan(limit); });
  require(given.limits.size() == given.counts.size() && grows && !has_nan, "a histogram has ",
          given.limits.size(), " limits and ", given.counts.size(),
          " counts, but needs as many of both, and limits that grow and are not NaN");
  double total = 0;
  for (const double count : given.counts) {
    require(count >= 0 && !std::isinf(count), "a histogram has the count ", count,
            ", but counts are finite and >= 0");
    total += count;
  }
  require(given.min <= given.max, "a histogram's min ", given.min, " is not at most its max ", given.max);
  // Weights of values need not be integers, so that sums of them have rounding errors.
  const double tolerance = 1e-9 * total;
  const bool has_others = !std::isfinite(given.sum);
  require(given.number >= total - tolerance && (given.number <= total + tolerance || has_others),
          "a histogram has the number ", given.number, ", but its counts sum up to ", total,
          has_others ? "" : " and its sum is finite");
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

Histogram make_histogram(const Values& values, HistogramBins bins) {
  Histogram histogram = make_histogram(values);  // for the sums
  histogram.limits.clear();
  histogram.counts.clear();
  std::vector<double> sorted = converted<double>(values);
  std::erase_if(sorted, [](double value) { return !std::isfinite(value); });
  if (sorted.empty()) return histogram;
  std::sort(sorted.begin(), sorted.end());
  double width = width_of(sorted, bins);
  const bool integers =
      std::visit([]<class Number>(std::span<const Number>) { return std::is_integral_v<Number>; }, values);
  if (integers && width > 0 && width < 1) width = 1;
  double first = sorted.front(), last = sorted.back();
  const double wanted = width > 0 ? std::ceil((last - first) / width) : 1;
  require(wanted <= kMaxBuckets, "a histogram of these values would have ", wanted,
          " buckets, but may have 100000; values far outside make so many: give other bins");
  const auto count = static_cast<std::size_t>(std::max(wanted, 1.0));
  if (first == last) {  // as numpy does
    first -= 0.5;
    last += 0.5;
  }
  // Each bucket but the last is open at its right end. Its limits have the bits of numpy.linspace().
  const double step = (last - first) / static_cast<double>(count);
  auto begin = sorted.begin();
  for (std::size_t i = 0; i < count; ++i) {
    const bool is_last = i + 1 == count;
    const double limit = is_last ? last : first + static_cast<double>(i + 1) * step;
    const auto end = is_last ? sorted.end() : std::lower_bound(begin, sorted.end(), limit);
    histogram.append(limit, static_cast<double>(end - begin));
    begin = end;
  }
  histogram.trim();
  return histogram;
}

Histogram checked_histogram(const Histogram& given) {
  check(given);
  Histogram histogram = {given.min, given.max, given.number, given.sum, given.sum_squares, {}, {}};
  for (std::size_t i = 0; i < given.counts.size(); ++i) histogram.append(given.limits[i], given.counts[i]);
  histogram.trim();
  return histogram;
}

}  // namespace sweep::tbwriter
