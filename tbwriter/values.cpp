#include "tbwriter/values.h"

#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

namespace sweep::tbwriter {

float to_float(Half value) {
  const int exponent = (value.bits >> 10) & 31;
  const auto mantissa = static_cast<float>(value.bits & 1023);
  float magnitude;
  if (exponent == 31) {
    magnitude =
        mantissa == 0 ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
  } else if (exponent == 0) {
    magnitude = std::ldexp(mantissa, -24);
  } else {
    magnitude = std::ldexp(1024 + mantissa, exponent - 25);
  }
  return std::copysign(magnitude, (value.bits >> 15) != 0 ? -1.0f : 1.0f);
}

float to_float(BFloat16 value) { return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16); }

std::span<const std::byte> Values::bytes() const {
  std::size_t size = 4;
  if (type_ == ValueType::kDouble || type_ == ValueType::kInt64) size = 8;
  if (type_ == ValueType::kBFloat16 || type_ == ValueType::kHalf) size = 2;
  return {static_cast<const std::byte*>(data_), size * count_};
}

namespace {

template <class Result>
std::vector<Result> converted(Values values) {
  std::vector<Result> result(values.count());
  const auto convert = [&]<class Number>(Number) {
    const std::span in(reinterpret_cast<const Number*>(values.bytes().data()), values.count());
    for (std::size_t i = 0; i < in.size(); ++i) {
      if constexpr (std::is_class_v<Number>) {
        result[i] = static_cast<Result>(to_float(in[i]));
      } else {
        result[i] = static_cast<Result>(in[i]);
      }
    }
  };
  switch (values.type()) {
    case ValueType::kFloat:
      convert(float{});
      break;
    case ValueType::kDouble:
      convert(double{});
      break;
    case ValueType::kInt32:
      convert(std::int32_t{});
      break;
    case ValueType::kInt64:
      convert(std::int64_t{});
      break;
    case ValueType::kBFloat16:
      convert(BFloat16{});
      break;
    case ValueType::kHalf:
      convert(Half{});
      break;
  }
  return result;
}

}  // namespace

std::vector<double> to_doubles(Values values) { return converted<double>(values); }

std::vector<float> to_floats(Values values) { return converted<float>(values); }

}  // namespace sweep::tbwriter
