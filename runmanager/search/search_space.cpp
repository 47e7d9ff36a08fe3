#include "runmanager/search/search_space.h"

#include <algorithm>
#include <utility>

namespace sweep {
namespace {

constexpr double kMaxSteps = 1e5;  // of a range of real numbers on a linear scale; a tenth of it at least
constexpr double kLeastLogSteps = 400;  // of a range on a logarithmic scale
constexpr int kLeastDigits = 3;         // significant ones, on a logarithmic scale
constexpr int kMaxDigits = 17;          // more tell no two doubles apart

/// 10^exponent for exponent >= 0; exact up to 10^22 and the same everywhere, as pow() need not be.
double power_of_ten(int exponent) {
  double power = 1;
  for (int i = 0; i < exponent; ++i) power *= 10;
  return power;
}

/// The nearest multiple of 10^exponent. A division by an exact power of ten rounds once, so this is the value
/// of the multiple's decimal text; a multiplication by 0.001 would not be.
double rounded_to(double value, int exponent) {
  const double power = power_of_ten(std::abs(exponent));
  const double multiple = exponent <= 0 ? std::round(value * power) : std::round(value / power);
  const double result = exponent <= 0 ? multiple / power : multiple * power;
  return std::isfinite(result) ? result + 0.0 : value;  // + 0.0: there is no -0
}

/// The largest e with 10^e <= value, value > 0.
int decimal_exponent(double value) {
  int exponent = static_cast<int>(std::floor(std::log10(value)));
  // log10() may be off by a rounding next to a power of ten.
  const auto power = [](int e) { return e >= 0 ? power_of_ten(e) : 1 / power_of_ten(-e); };
  if (std::abs(exponent) < 22) {
    if (power(exponent + 1) <= value)
      ++exponent;
    else if (power(exponent) > value)
      --exponent;
  }
  return exponent;
}

constexpr std::size_t kMaxCombinations = 1'000'000;

std::vector<UnitScale> scales_of(const SearchDomain& domain) {
  return {domain.dimensions.begin(), domain.dimensions.end()};
}

}  // namespace

double rounded(const Dimension& dimension, double value) {
  const double low = dimension.low, high = dimension.high;
  switch (dimension.kind) {
    case DimensionKind::kChoice:
      return std::clamp(std::round(value), 0.0, static_cast<double>(dimension.choices - 1));
    case DimensionKind::kInteger:
    case DimensionKind::kLogInteger:
      return std::clamp(std::round(value), std::ceil(low), std::floor(high));
    case DimensionKind::kUniform:
      if (low == high) return low;
      return std::clamp(rounded_to(value, decimal_exponent((high - low) / kMaxSteps) + 1), low, high);
    case DimensionKind::kLogUniform: {
      const double inside = std::clamp(value, low, high);
      if (low == high) return low;
      // Values of n significant digits are at most 10^(1-n) apart, as a part of themselves.
      const double apart = (std::log(high) - std::log(low)) / kLeastLogSteps;
      const int digits = std::clamp(1 - decimal_exponent(apart), kLeastDigits, kMaxDigits);
      return std::clamp(rounded_to(inside, decimal_exponent(inside) - digits + 1), low, high);
    }
  }
  return value;
}

UnitScale::UnitScale(const Dimension& dimension)
    : dimension_(dimension),
      logarithmic_(is_logarithmic(dimension.kind)),
      has_order_(dimension.kind != DimensionKind::kChoice || dimension.ordered) {
  double low = dimension.low, high = dimension.high;
  switch (dimension.kind) {
    case DimensionKind::kUniform:
    case DimensionKind::kLogUniform:
      count_ = low == high ? 1 : 0;
      first_ = low;
      break;
    case DimensionKind::kInteger:
    case DimensionKind::kLogInteger:
      first_ = std::ceil(low);
      count_ = static_cast<std::size_t>(std::floor(high) - first_) + 1;
      break;
    case DimensionKind::kChoice:
      count_ = dimension.choices;
      break;
  }
  if (count_ > 0) {  // a cell of length 1 around each
    low = first_ - 0.5;
    high = first_ + static_cast<double>(count_) - 0.5;
    if (logarithmic_ && low <= 0) low = first_ / 2;  // a real number that cannot vary
  }
  start_ = scaled(low);
  end_ = scaled(high);
}

double UnitScale::scaled(double value) const { return logarithmic_ ? std::log(value) : value; }

double UnitScale::value(double unit) const {
  if (count_ == 1) return first_;
  const double scaled = start_ + unit * (end_ - start_);
  const double exact = logarithmic_ ? std::exp(scaled) : scaled;
  if (count_ == 0) return rounded(dimension_, exact);
  return value_at(index_of(exact));
}

std::size_t UnitScale::index_of(double value) const {
  const double index = std::floor(value - first_ + 0.5);
  return static_cast<std::size_t>(std::clamp(index, 0.0, static_cast<double>(count_ - 1)));
}

double UnitScale::unit(double value) const {
  if (count_ > 0) {
    const UnitCell covered = cell(value);
    return (covered.low + covered.high) / 2;
  }
  const double inside = std::clamp(value, dimension_.low, dimension_.high);
  return std::clamp((scaled(inside) - start_) / (end_ - start_), 0.0, 1.0);
}

UnitCell UnitScale::cell(double value) const {
  const std::size_t index = index_of(value);
  const auto edge = [&](std::size_t i) {
    if (i == 0) return 0.0;
    if (i == count_) return 1.0;
    return (scaled(first_ + static_cast<double>(i) - 0.5) - start_) / (end_ - start_);
  };
  return {.low = edge(index), .high = edge(index + 1)};
}

SearchPoint without_inactive(const SearchDomain& domain, SearchPoint point) {
  if (!domain.is_active) return point;
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t d = 0; d < point.size(); ++d)
      if (point[d] && !domain.is_active(point, d)) {
        point[d].reset();
        changed = true;
      }
  }
  return point;
}

bool is_enumerable(const SearchDomain& domain) {
  std::size_t combinations = 1;
  for (const UnitScale& scale : scales_of(domain)) {
    if (scale.count() == 0 || scale.count() > kMaxCombinations / combinations) return false;
    combinations *= scale.count();
  }
  return true;
}

std::vector<SearchPoint> all_points(const SearchDomain& domain) {
  const std::vector<UnitScale> scales = scales_of(domain);
  std::vector<std::size_t> extents;
  for (const UnitScale& scale : scales) extents.push_back(scale.count());
  std::vector<SearchPoint> points;
  for_each_product(extents, [&](const std::vector<std::size_t>& indices) {
    SearchPoint values(scales.size());
    for (std::size_t d = 0; d < scales.size(); ++d) values[d] = scales[d].value_at(indices[d]);
    SearchPoint point = without_inactive(domain, std::move(values));
    // Where combinations differ only in what does not exist, the first one counts.
    bool first = true;
    for (std::size_t d = 0; d < scales.size(); ++d) first = first && (point[d] || indices[d] == 0);
    if (first && (!domain.is_allowed || domain.is_allowed(point))) points.push_back(std::move(point));
  });
  return points;
}

}  // namespace sweep
