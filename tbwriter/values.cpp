#include "tbwriter/values.h"

#include <bit>
#include <cmath>
#include <limits>

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

std::string_view bytes_of(const Values& values) {
  return std::visit(
      [](const auto& of_type) {
        return std::string_view(reinterpret_cast<const char*>(of_type.data()), of_type.size_bytes());
      },
      values);
}

}  // namespace sweep::tbwriter
