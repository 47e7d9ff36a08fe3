#include "core/data/readers/npy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/base/error.h"
#include "core/data/readers/input_file.h"

namespace sweep {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMostHeaderBytes = 64 << 10;
constexpr std::size_t kMostDimensions = 8;
constexpr std::size_t kValuesAtOnce = 32 << 10;
constexpr const char* kAllowed = "allowed: bool, integers, float16, float32, float64";

struct Header {
  char kind = 0;  // as in dtype.kind: b, i, u, f
  std::size_t bytes = 0;
  bool big_endian = false;
  bool fortran_order = false;
  Shape shape;
};

[[noreturn]] void fail(const ByteSource& source, const std::string& problem) {
  throw DataError(source.name + ": " + problem);
}

// The header: a dictionary in Python's notation with the keys descr, fortran_order and shape.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const ByteSource& source) : text_(text), source_(source) {}

  Header parse() {
    Header header;
    bool has_type = false, has_order = false, has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr") {
        has_type = true;
        set_type(header);
      } else if (key == "fortran_order") {
        has_order = true;
        header.fortran_order = boolean();
      } else if (key == "shape") {
        has_shape = true;
        header.shape = shape();
      } else {
        fail(source_, "the header has an unknown key " + quoted_name(key));
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (!has_type || !has_order || !has_shape) fail(source_, "the header is incomplete");
    return header;
  }

 private:
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool accept(char c) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(source_, std::string("the header is damaged: expected '") + c + "'");
  }
  std::string string() {
    skip_space();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') fail(source_, "the header is damaged: expected a string");
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail(source_, "the header is damaged: a string does not end");
    std::string value(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return value;
  }
  bool boolean() {
    skip_space();
    for (const std::string_view word : {"True", "False"}) {
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return word == "True";
      }
    }
    fail(source_, "the header is damaged: expected True or False");
  }
  Shape shape() {
    Shape extents;
    expect('(');
    while (!accept(')')) {
      std::int64_t extent = 0;
      skip_space();
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), extent);
      if (error != std::errc() || extent < 0) fail(source_, "the header is damaged: expected an extent");
      at_ = static_cast<std::size_t>(end - text_.data());
      if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // written by Python 2
      extents.push_back(extent);
      if (extents.size() > kMostDimensions) {
        fail(source_, "has more than " + std::to_string(kMostDimensions) + " dimensions");
      }
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return extents;
  }
  // "<f4": byte order, kind, bytes.
  void set_type(Header& header) {
    skip_space();
    if (at_ < text_.size() && text_[at_] == '[') {
      fail(source_, std::string("holds structures with fields; ") + kAllowed);
    }
    const std::string type = string();
    const std::size_t kind_at = !type.empty() && std::strchr("<>|=", type[0]) != nullptr ? 1 : 0;
    header.big_endian = type.starts_with('>');
    header.kind = kind_at < type.size() ? type[kind_at] : '\0';
    if (header.kind == 'O') {
      fail(source_,
           std::string("holds Python objects, which are never loaded, as they could run programs; ") +
               kAllowed);
    }
    const std::string_view size = std::string_view(type).substr(std::min(kind_at + 1, type.size()));
    header.bytes = size == "1" ? 1 : size == "2" ? 2 : size == "4" ? 4 : size == "8" ? 8 : 0;
    const bool integer = (header.kind == 'i' || header.kind == 'u') && header.bytes > 0;
    const bool floating = header.kind == 'f' && header.bytes > 1;
    const bool boolean = header.kind == 'b' && header.bytes == 1;
    if (!integer && !floating && !boolean)
      fail(source_, "holds values of type " + quoted_name(type) + "; " + kAllowed);
  }

  std::string_view text_;
  const ByteSource& source_;
  std::size_t at_ = 0;
};

Header read_header(const ByteSource& source) {
  std::array<std::uint8_t, 12> start{};
  const auto read = [&](std::span<std::uint8_t> out) {
    if (source.read(out) < out.size()) fail(source, "is cut short in the header");
  };
  const std::size_t magic_bytes = source.read(std::span(start).first(8));
  if (magic_bytes < 8 || std::memcmp(start.data(), kMagic.data(), kMagic.size()) != 0) {
    fail(source, "is not a NumPy array file (.npy)");
  }
  // Version 1 has 2 bytes for the header's length, versions 2 and 3 have 4.
  if (start[6] < 1 || start[6] > 3)
    fail(source, "has version " + std::to_string(start[6]) + "; allowed: 1 to 3");
  const std::size_t length_bytes = start[6] == 1 ? 2 : 4;
  read(std::span(start).subspan(8, length_bytes));
  std::size_t length = 0;
  for (std::size_t i = length_bytes; i-- > 0;) length = length << 8 | start[8 + i];
  if (length > kMostHeaderBytes) fail(source, "has a header of " + std::to_string(length) + " bytes");
  std::string text(length, '\0');
  read(std::span(reinterpret_cast<std::uint8_t*>(text.data()), text.size()));
  return HeaderParser(text, source).parse();
}

float half_to_float(std::uint16_t half) {
  const int exponent = half >> 10 & 31;
  const int fraction = half & 1023;
  float value = 0;
  if (exponent == 31) {
    value = fraction == 0 ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
  } else {
    value = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                          : std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
  }
  return (half & 0x8000) != 0 ? -value : value;
}

template <typename T>
T load(const std::uint8_t* bytes, bool big_endian) {
  std::array<std::uint8_t, sizeof(T)> ordered;
  std::memcpy(ordered.data(), bytes, sizeof(T));
  if (big_endian) std::reverse(ordered.begin(), ordered.end());
  return std::bit_cast<T>(ordered);
}

std::int64_t integer_at(const std::uint8_t* bytes, const Header& header, const ByteSource& source) {
  const bool is_signed = header.kind == 'i';
  switch (header.bytes) {
    case 1:
      return is_signed ? static_cast<std::int8_t>(*bytes) : *bytes;
    case 2:
      return is_signed ? load<std::int16_t>(bytes, header.big_endian)
                       : load<std::uint16_t>(bytes, header.big_endian);
    case 4:
      return is_signed ? load<std::int32_t>(bytes, header.big_endian)
                       : std::int64_t{load<std::uint32_t>(bytes, header.big_endian)};
    default:
      const auto value = load<std::int64_t>(bytes, header.big_endian);
      if (!is_signed && value < 0) fail(source, "holds an integer of more than 63 bits");
      return value;
  }
}

float float_at(const std::uint8_t* bytes, const Header& header, const ByteSource& source) {
  if (header.kind != 'f') return static_cast<float>(integer_at(bytes, header, source));
  if (header.bytes == 2) return half_to_float(load<std::uint16_t>(bytes, header.big_endian));
  if (header.bytes == 4) return load<float>(bytes, header.big_endian);
  const auto value = load<double>(bytes, header.big_endian);
  const auto narrow = static_cast<float>(value);
  if (std::isinf(narrow) && !std::isinf(value)) {
    fail(source, "holds " + std::to_string(value) + ", which is too large for float32");
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

template <typename T, typename Convert>
std::vector<T> read_values(const ByteSource& source, const Header& header, std::size_t count,
                           Convert convert) {
  std::vector<T> values(count);
  std::vector<std::uint8_t> bytes(std::min(count, kValuesAtOnce) * header.bytes);
  FortranOrder order(header.shape);
  const bool reorder = header.fortran_order && header.shape.size() > 1;
  for (std::size_t done = 0; done < count;) {
    const std::size_t now = std::min(count - done, kValuesAtOnce);
    if (source.read(std::span(bytes).first(now * header.bytes)) < now * header.bytes) {
      fail(source, "is cut short: its header promises " + to_string(header.shape) + " = " +
                       std::to_string(count) + " values of " + std::to_string(header.bytes) + " bytes");
    }
    for (std::size_t i = 0; i < now; ++i, ++done) {
      values[reorder ? order.next() : done] = convert(bytes.data() + i * header.bytes);
    }
  }
  return values;
}

}  // namespace

bool starts_npy(std::string_view start) { return start.starts_with(kMagic); }

NamedArray read_npy(const ByteSource& source, const ReadOptions& options) {
  const Header header = read_header(source);
  std::uint64_t count = 1;
  bool too_many = false;
  for (const std::int64_t extent : header.shape) {
    too_many = too_many || __builtin_mul_overflow(count, static_cast<std::uint64_t>(extent), &count);
  }
  if (!too_many && count == 0) fail(source, "holds nothing: its shape is " + to_string(header.shape));
  if (header.shape.empty()) fail(source, "holds a single number, expected an array");
  if (too_many || count > source.most_bytes / header.bytes) {
    fail(source, "is cut short: its header promises " + to_string(header.shape) + " values of " +
                     std::to_string(header.bytes) + " bytes, which a file of this size cannot hold");
  }
  NamedArray array;
  array.shape = header.shape;
  const auto per_sample = count / static_cast<std::uint64_t>(header.shape.front());
  const bool bytes = header.kind == 'b' || (header.kind == 'u' && header.bytes == 1);
  const bool integers = header.kind != 'f' && !bytes && per_sample == 1;
  check_memory(options, 1, header.shape, bytes ? 1 : integers ? 8 : 4, source.name);
  if (bytes) {
    array.values =
        read_values<std::uint8_t>(source, header, count, [](const std::uint8_t* at) { return *at; });
  } else if (integers) {
    array.values = read_values<std::int64_t>(
        source, header, count, [&](const std::uint8_t* at) { return integer_at(at, header, source); });
  } else {
    array.values = read_values<float>(source, header, count,
                                      [&](const std::uint8_t* at) { return float_at(at, header, source); });
  }
  std::array<std::uint8_t, 1> more;
  if (source.read(more) != 0) {
    fail(source, "is too long: more follows the " + std::to_string(count) + " values of its header");
  }
  return array;
}

}  // namespace sweep
