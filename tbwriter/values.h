// Type-erased arrays of numbers, the arguments of histograms and tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
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
float to_float(Half value);
float to_float(BFloat16 value);

/// TensorFlow's DataType of the values.
enum class ValueType { kFloat = 1, kDouble = 2, kInt32 = 3, kInt64 = 9, kBFloat16 = 14, kHalf = 19 };

template <class Number>
inline constexpr ValueType kValueType = ValueType{0};  // not supported
template <>
inline constexpr ValueType kValueType<float> = ValueType::kFloat;
template <>
inline constexpr ValueType kValueType<double> = ValueType::kDouble;
template <>
inline constexpr ValueType kValueType<std::int32_t> = ValueType::kInt32;
template <>
inline constexpr ValueType kValueType<std::int64_t> = ValueType::kInt64;
template <>
inline constexpr ValueType kValueType<BFloat16> = ValueType::kBFloat16;
template <>
inline constexpr ValueType kValueType<Half> = ValueType::kHalf;

/// A view of values of one of the six types above: owns and copies nothing. Converts implicitly from spans,
/// vectors and arrays.
class Values {
 public:
  template <std::ranges::contiguous_range Range>
  requires(kValueType<std::ranges::range_value_t<Range>> != ValueType{0}) Values(const Range& range)
      : Values(kValueType<std::ranges::range_value_t<Range>>, std::ranges::data(range),
               std::ranges::size(range)) {}

  ValueType type() const { return type_; }
  std::size_t count() const { return count_; }
  std::span<const std::byte> bytes() const;  // in memory order

 private:
  Values(ValueType type, const void* data, std::size_t count) : type_(type), data_(data), count_(count) {}

  ValueType type_;
  const void* data_;
  std::size_t count_;
};

/// The values as doubles; exact except for large integers. to_floats() is exact for bfloat16, half and float.
std::vector<double> to_doubles(Values values);
std::vector<float> to_floats(Values values);

}  // namespace sweep::tbwriter
