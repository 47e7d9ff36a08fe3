#include "core/data/readers/array_values.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "core/base/error.h"

namespace sweep {
namespace {

constexpr std::size_t kValuesAtOnce = 32 << 10;

static_assert(std::endian::native == std::endian::little, "values are stored as little-endian ones");

template <typename T>
T load(const std::uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

struct Half {
  std::uint16_t bits;
  // IEEE 754 binary16. 112 is the difference of the exponents' biases, 127 − 15; subnormal halves are
  // multiples of 2^-24.
  explicit operator float() const {
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
    const std::uint32_t exponent = (bits >> 10) & 0x1fu;
    const std::uint32_t mantissa = bits & 0x3ffu;
    if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
    if (exponent == 0) {
      const float magnitude = static_cast<float>(mantissa) * 0x1.0p-24f;
      return sign != 0 ? -magnitude : magnitude;
    }
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  }
};

struct Bfloat {
  std::uint16_t bits;
  explicit operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
};

template <typename From, typename To>
void convert(const std::uint8_t* from, std::size_t count, To* to) {
  // NOLINTNEXTLINE(bugprone-signed-char-misuse): numbers, not characters
  for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<To>(load<From>(from + i * sizeof(From)));
}

template <typename T>
constexpr TypeRow row(const char* name) {
  TypeRow row{name, sizeof(T), convert<T, float>, nullptr};
  if constexpr (std::is_integral_v<T>) row.to_integers = convert<T, std::int64_t>;
  return row;
}

constexpr TypeRow kTypeRows[] = {
    row<std::uint8_t>("BOOL"), row<std::uint8_t>("U8"), row<std::int8_t>("I8"),    row<std::uint16_t>("U16"),
    row<std::int16_t>("I16"),  row<Half>("F16"),        row<Bfloat>("BF16"),       row<std::uint32_t>("U32"),
    row<std::int32_t>("I32"),  row<float>("F32"),       row<std::uint64_t>("U64"), row<std::int64_t>("I64"),
    row<double>("F64")};

// Throws for a value that would become another number.
void check_values(const std::uint8_t* values, std::size_t count, TensorType type, const ByteSource& source) {
  for (std::size_t i = 0; type == TensorType::kU64 && i < count; ++i) {
    if (load<std::int64_t>(values + i * sizeof(std::int64_t)) < 0)
      refuse(source.name, "holds an integer of more than 63 bits");
  }
  for (std::size_t i = 0; type == TensorType::kF64 && i < count; ++i) {
    const auto value = load<double>(values + i * sizeof(double));
    if (std::isfinite(value) && std::isinf(static_cast<float>(value)))
      refuse(source.name, "holds {}, which is too large for float32", value);
  }
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
  refuse(source.name, "is cut short: its header promises {} = {} values of {} bytes", to_string(layout.shape),
         element_count(layout.shape), row_of(layout.type).bytes);
}

// The values as T: std::uint8_t for bytes, else float or std::int64_t.
template <typename T>
std::vector<T> read_values(const ByteSource& source, const ArrayLayout& layout, std::size_t count) {
  const TypeRow& type = row_of(layout.type);
  const bool reorder = layout.fortran_order && layout.shape.size() > 1;
  const std::size_t at_once = std::min(count, kValuesAtOnce);
  std::vector<T> values(count), piece(reorder ? at_once : 0);
  std::vector<std::uint8_t> bytes(sizeof(T) == 1 ? 0 : at_once * type.bytes);
  FortranOrder order(layout.shape);
  for (std::size_t done = 0; done < count;) {
    const std::size_t now = std::min(count - done, kValuesAtOnce);
    T* to = reorder ? piece.data() : values.data() + done;
    if constexpr (sizeof(T) == 1) {
      read_whole(source, layout, {to, now});
    } else {
      read_whole(source, layout, std::span(bytes).first(now * type.bytes));
      for (auto at = bytes.begin(); layout.big_endian && at != bytes.end(); at += type.bytes)
        std::reverse(at, at + type.bytes);
      check_values(bytes.data(), now, layout.type, source);
      if constexpr (std::is_same_v<T, float>)
        type.to_floats(bytes.data(), now, to);
      else
        type.to_integers(bytes.data(), now, to);
    }
    for (std::size_t i = 0; reorder && i < now; ++i) values[order.next()] = piece[i];
    done += now;
  }
  return values;
}

}  // namespace

std::span<const TypeRow> type_rows() { return kTypeRows; }

ByteSource source_of(InputFile& file) {
  return {[&](std::span<std::uint8_t> out) { return file.read(out); }, file.max_content(), file.name()};
}

void require_end(const ByteSource& source, const Shape& shape) {
  std::array<std::uint8_t, 1> more;
  if (source.read(more) == 0) return;
  refuse(source.name, "is too long: more follows the {} values of its header", element_count(shape));
}

NamedArray read_array(const ByteSource& source, const ArrayLayout& layout) {
  const TypeRow& type = row_of(layout.type);
  std::uint64_t count = 1;
  bool too_many = false;
  for (const std::int64_t extent : layout.shape) {
    too_many = too_many || __builtin_mul_overflow(count, static_cast<std::uint64_t>(extent), &count);
  }
  if (!too_many && count == 0)
    refuse<UnusableArray>(source.name, "holds nothing: its shape is {}", to_string(layout.shape));
  if (layout.shape.empty()) refuse<UnusableArray>(source.name, "holds a single number, expected an array");
  if (too_many || count > source.max_bytes / type.bytes) {
    refuse(source.name,
           "is cut short: its header promises {} values of {} bytes, which a file of this size cannot hold; "
           "compressed data may expand to 100 times its size",
           to_string(layout.shape), type.bytes);
  }
  const auto samples = static_cast<std::uint64_t>(layout.shape.front()), per_sample = count / samples;
  const bool bytes = layout.type == TensorType::kU8;
  const bool integers = type.to_integers != nullptr && !bytes && per_sample == 1;
  check_memory(samples, {layout.shape.begin() + 1, layout.shape.end()},
               bytes      ? 1
               : integers ? 8
                          : 4,
               source.name);
  NamedArray array{.name = {}, .shape = layout.shape, .values = {}};
  if (bytes)
    array.values = read_values<std::uint8_t>(source, layout, count);
  else if (integers)
    array.values = read_values<std::int64_t>(source, layout, count);
  else
    array.values = read_values<float>(source, layout, count);
  array.were_integers = type.to_integers != nullptr;
  return array;
}

NamedArray array_or_problem(const std::function<NamedArray()>& read) {
  try {
    return read();
  } catch (const UnusableArray& error) {
    return {.name = {}, .shape = {}, .values = {}, .problem = error.what()};
  }
}

}  // namespace sweep
