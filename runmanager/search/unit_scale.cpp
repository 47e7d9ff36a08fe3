#include "runmanager/search/unit_scale.h"

#include <algorithm>
#include <cmath>

namespace sweep {

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

}  // namespace sweep
