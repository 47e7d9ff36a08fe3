#include "core/data/readers/array_values.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/base/error.h"

namespace sweep {
namespace {

constexpr std::size_t kValuesAtOnce = 32 << 10;

template <typename T>
T load(const std::uint8_t* bytes, bool big_endian) {
  std::array<std::uint8_t, sizeof(T)> ordered;
  std::memcpy(ordered.data(), bytes, sizeof(T));
  if (big_endian) std::reverse(ordered.begin(), ordered.end());
  return std::bit_cast<T>(ordered);
}

std::int64_t integer_at(const std::uint8_t* bytes, const ArrayLayout& layout, const ByteSource& source) {
  const bool is_signed = layout.kind == ValueKind::kSigned;
  switch (layout.bytes) {
    case 1:
      return is_signed ? static_cast<std::int8_t>(*bytes) : *bytes;
    case 2:
      return is_signed ? load<std::int16_t>(bytes, layout.big_endian)
                       : load<std::uint16_t>(bytes, layout.big_endian);
    case 4:
      return is_signed ? load<std::int32_t>(bytes, layout.big_endian)
                       : std::int64_t{load<std::uint32_t>(bytes, layout.big_endian)};
    default:
      const auto value = load<std::int64_t>(bytes, layout.big_endian);
      if (!is_signed && value < 0) source.fail("holds an integer of more than 63 bits");
      return value;
  }
}

float float_at(const std::uint8_t* bytes, const ArrayLayout& layout, const ByteSource& source) {
  if (layout.kind == ValueKind::kBfloat)
    return bfloat_to_float(load<std::uint16_t>(bytes, layout.big_endian));
  if (layout.kind != ValueKind::kFloat) return static_cast<float>(integer_at(bytes, layout, source));
  if (layout.bytes == 2) return half_to_float(load<std::uint16_t>(bytes, layout.big_endian));
  if (layout.bytes == 4) return load<float>(bytes, layout.big_endian);
  const auto value = load<double>(bytes, layout.big_endian);
  const auto narrow = static_cast<float>(value);
  if (std::isinf(narrow) && !std::isinf(value)) {
    source.fail("holds " + std::to_string(value) + ", which is too large for float32");
  }
  return narrow;
}

// Positions in C order of the values of a file in Fortran order, whose first index runs fastest.
class FortranOrder {
 public:
  explicit FortranOrder(const Shape& shape) : shape_(shape), index_(shape.size()), strides_(shape.size(), 1) {
    for (std::size_t d = shape.size(); d-- > 1;)
      strides_[d - 1] = strides_[d] * static_cast<std::size_t>(shape[d]);
  }
  std::size_t next() {
    const std::size_t position = position_;
    for (std::size_t d = 0; d < shape_.size(); ++d) {
      position_ += strides_[d];
      if (++index_[d] < shape_[d]) break;
      position_ -= strides_[d] * static_cast<std::size_t>(shape_[d]);
      index_[d] = 0;
    }
    return position;
  }

 private:
  Shape shape_;
  Shape index_;
  std::vector<std::size_t> strides_;
  std::size_t position_ = 0;
};

void read_whole(const ByteSource& source, const ArrayLayout& layout, std::span<std::uint8_t> out) {
  if (source.read(out) == out.size()) return;
  source.fail("is cut short: its header promises " + to_string(layout.shape) + " = " +
              std::to_string(element_count(layout.shape)) + " values of " + std::to_string(layout.bytes) +
              " bytes");
}

bool is_reordered(const ArrayLayout& layout) { return layout.fortran_order && layout.shape.size() > 1; }

template <typename T, typename Convert>
std::vector<T> read_values(const ByteSource& source, const ArrayLayout& layout, std::size_t count,
                           Convert convert) {
  std::vector<T> values(count);
  std::vector<std::uint8_t> bytes(std::min(count, kValuesAtOnce) * layout.bytes);
  FortranOrder order(layout.shape);
  const bool reorder = is_reordered(layout);
  for (std::size_t done = 0; done < count;) {
    const std::size_t now = std::min(count - done, kValuesAtOnce);
    read_whole(source, layout, std::span(bytes).first(now * layout.bytes));
    for (std::size_t i = 0; i < now; ++i, ++done) {
      values[reorder ? order.next() : done] = convert(bytes.data() + i * layout.bytes);
    }
  }
  return values;
}

}  // namespace

void ByteSource::fail(const std::string& problem) const { throw DataError(name + ": " + problem); }

ByteSource source_of(InputFile& file) {
  return {[&](std::span<std::uint8_t> out) { return file.read(out); }, file.max_content(), file.name()};
}

void require_end(const ByteSource& source, const Shape& shape) {
  std::array<std::uint8_t, 1> more;
  if (source.read(more) == 0) return;
  source.fail("is too long: more follows the " + std::to_string(element_count(shape)) +
              " values of its header");
}

// IEEE 754 binary16. 112 is the difference of the exponents' biases, 127 − 15; subnormal
// halves are multiples of 2^-24.
float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1fu;
  const std::uint32_t mantissa = half & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1.0p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

float bfloat_to_float(std::uint16_t bfloat) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bfloat) << 16);
}

ArrayValues read_array_values(const ByteSource& source, const ArrayLayout& layout) {
  std::uint64_t count = 1;
  bool too_many = false;
  for (const std::int64_t extent : layout.shape) {
    too_many = too_many || __builtin_mul_overflow(count, static_cast<std::uint64_t>(extent), &count);
  }
  if (!too_many && count == 0) source.fail("holds nothing: its shape is " + to_string(layout.shape));
  if (layout.shape.empty()) source.fail("holds a single number, expected an array");
  if (too_many || count > source.max_bytes / layout.bytes) {
    source.fail("is cut short: its header promises " + to_string(layout.shape) + " values of " +
                std::to_string(layout.bytes) +
                " bytes, which a file of this size cannot hold; compressed data may expand to 100 times "
                "its size");
  }
  const auto per_sample = count / static_cast<std::uint64_t>(layout.shape.front());
  const bool bytes = layout.kind == ValueKind::kUnsigned && layout.bytes == 1;
  const bool is_integer = layout.kind == ValueKind::kUnsigned || layout.kind == ValueKind::kSigned;
  const bool integers = is_integer && !bytes && per_sample == 1;
  check_memory(1, layout.shape, bytes ? 1 : integers ? 8 : 4, source.name);
  if (bytes && !is_reordered(layout)) {
    std::vector<std::uint8_t> values(count);
    read_whole(source, layout, values);
    return values;
  }
  if (bytes)
    return read_values<std::uint8_t>(source, layout, count, [](const std::uint8_t* at) { return *at; });
  if (integers) {
    return read_values<std::int64_t>(source, layout, count,
                                     [&](const std::uint8_t* at) { return integer_at(at, layout, source); });
  }
  return read_values<float>(source, layout, count,
                            [&](const std::uint8_t* at) { return float_at(at, layout, source); });
}

}  // namespace sweep
