// Arrays of the number types that training code uses, as histograms and tensors take them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>

namespace sweep::tbwriter {

/// IEEE 754 binary16, as its bits.
struct Half {
  std::uint16_t bits = 0;
};

/// The upper half of a float, as its bits.
struct BFloat16 {
  std::uint16_t bits = 0;
};

/// Exactly the value; NaN and infinity included.
float to_float(Half value);
float to_float(BFloat16 value);

/// A number type as TensorBoard numbers it.
enum class ValueType { kFloat = 1, kDouble = 2, kInt64 = 9, kBFloat16 = 14, kHalf = 19 };

template <class Number>
inline constexpr ValueType kValueType = ValueType{0};  // of no other types
template <>
inline constexpr ValueType kValueType<float> = ValueType::kFloat;
template <>
inline constexpr ValueType kValueType<double> = ValueType::kDouble;
template <>
inline constexpr ValueType kValueType<std::int64_t> = ValueType::kInt64;
template <>
inline constexpr ValueType kValueType<BFloat16> = ValueType::kBFloat16;
template <>
inline constexpr ValueType kValueType<Half> = ValueType::kHalf;

/// Values of one type, in place: owns nothing, copies nothing. Made from a span, vector or array of the five
/// types.
class Values {
 public:
  template <std::ranges::contiguous_range Range>
  requires(kValueType<std::ranges::range_value_t<Range>> != ValueType{0}) Values(const Range& range)
      : Values(kValueType<std::ranges::range_value_t<Range>>, std::ranges::data(range),
               std::ranges::size(range)) {}

  ValueType type() const { return type_; }
  std::size_t count() const { return count_; }
  std::span<const std::byte> bytes() const;  // as they lie in memory

 private:
  Values(ValueType type, const void* data, std::size_t count) : type_(type), data_(data), count_(count) {}

  ValueType type_;
  const void* data_;
  std::size_t count_;
};

}  // namespace sweep::tbwriter
