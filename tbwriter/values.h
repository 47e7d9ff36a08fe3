// Views of arrays of numbers of any type, the arguments of histograms and tensors.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

namespace sweep::tbwriter {

/// IEEE 754 binary16, as its bits.
struct Half {
  std::uint16_t bits = 0;
};

/// bfloat16, the upper half of a float, as its bits.
struct BFloat16 {
  std::uint16_t bits = 0;
};

/// Exact, including NaN and infinity.
inline float to_float(Half value) {
  // In a float's places; the factor is the difference of the exponents' biases.
  const std::uint32_t sign = static_cast<std::uint32_t>(value.bits >> 15) << 31,
                      rest = static_cast<std::uint32_t>(value.bits & 0x7FFF) << 13;
  const bool is_finite = rest < 31u << 23;
  if (!is_finite) return std::bit_cast<float>(sign | rest | 255u << 23);
  return std::bit_cast<float>(sign | rest) * 0x1p112f;
}

inline float to_float(BFloat16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

/// A view of numbers of one type: owns and copies nothing. Converts implicitly from spans, vectors and
/// arrays.
using Values = std::variant<std::span<const float>, std::span<const double>, std::span<const std::int32_t>,
                            std::span<const std::int64_t>, std::span<const std::uint8_t>,
                            std::span<const BFloat16>, std::span<const Half>>;

/// A view of `Values`, or of another variant of spans.
template <class Spans>
std::size_t count_values(const Spans& values) {
  return std::visit([](const auto& of_type) { return of_type.size(); }, values);
}

/// The values as they lie in memory.
inline std::string_view bytes_of(const Values& values) {
  return std::visit(
      [](const auto& of_type) {
        return std::string_view(reinterpret_cast<const char*>(of_type.data()), of_type.size_bytes());
      },
      values);
}

/// The values as `Number`; exact, except for large integers.
template <class Number>
std::vector<Number> converted(const Values& values) {
  std::vector<Number> result(count_values(values));
  std::visit(
      [&]<class From>(std::span<const From> from) {
        for (std::size_t i = 0; i < from.size(); ++i) {
          if constexpr (std::is_class_v<From>) {
            result[i] = static_cast<Number>(to_float(from[i]));
          } else {
            result[i] = static_cast<Number>(from[i]);
          }
        }
      },
      values);
  return result;
}

}  // namespace sweep::tbwriter
