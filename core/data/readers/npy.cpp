#include "core/data/readers/readers.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <iterator>
#include <utility>

#include "core/base/error.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMaxHeaderBytes = 64 << 10;
constexpr std::size_t kMaxDimensions = 8;
constexpr std::pair<std::string_view, TensorType> kTypes[] = {
    {"b1", TensorType::kBool}, {"u1", TensorType::kU8},  {"u2", TensorType::kU16}, {"u4", TensorType::kU32},
    {"u8", TensorType::kU64},  {"i1", TensorType::kI8},  {"i2", TensorType::kI16}, {"i4", TensorType::kI32},
    {"i8", TensorType::kI64},  {"f2", TensorType::kF16}, {"f4", TensorType::kF32}, {"f8", TensorType::kF64}};
constexpr const char* kAllowed = "allowed: bool, integers, float16, float32, float64";

// The header: a dictionary in Python's notation with the keys descr, fortran_order and shape.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const ByteSource& source) : text_(text), source_(source) {}

  ArrayLayout parse() {
    ArrayLayout header;
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
        source_.fail("the header has an unknown key " + quoted_name(key));
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (!has_type || !has_order || !has_shape) source_.fail("the header is incomplete");
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
    if (!accept(c)) source_.fail(std::string("the header is damaged: expected '") + c + "'");
  }
  std::string string() {
    skip_space();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') source_.fail("the header is damaged: expected a string");
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) source_.fail("the header is damaged: a string does not end");
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
    source_.fail("the header is damaged: expected True or False");
  }
  Shape shape() {
    Shape extents;
    expect('(');
    while (!accept(')')) {
      std::int64_t extent = 0;
      skip_space();
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), extent);
      if (error != std::errc() || extent < 0) source_.fail("the header is damaged: expected an extent");
      at_ = static_cast<std::size_t>(end - text_.data());
      if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // written by Python 2
      extents.push_back(extent);
      if (extents.size() > kMaxDimensions) {
        source_.fail("has more than " + std::to_string(kMaxDimensions) + " dimensions");
      }
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return extents;
  }
  // "<f4": byte order, kind, bytes.
  void set_type(ArrayLayout& header) {
    skip_space();
    if (at_ < text_.size() && text_[at_] == '[') {
      source_.fail(std::string("holds structures with fields; ") + kAllowed);
    }
    const std::string type = string();
    std::string_view code = type;
    header.big_endian = code.starts_with('>');
    if (code.find_first_of("<>|=") == 0) code.remove_prefix(1);
    if (code.starts_with('O')) {
      source_.fail(std::string("holds Python objects, which are never loaded, as they could run programs; ") +
                   kAllowed);
    }
    const auto found = std::ranges::find(kTypes, code, &std::pair<std::string_view, TensorType>::first);
    if (found == std::end(kTypes))
      source_.fail("holds values of type " + quoted_name(type) + "; " + kAllowed);
    header.type = found->second;
  }

  std::string_view text_;
  const ByteSource& source_;
  std::size_t at_ = 0;
};

ArrayLayout read_header(const ByteSource& source) {
  std::array<std::uint8_t, 12> start{};
  const auto read = [&](std::span<std::uint8_t> out) {
    if (source.read(out) < out.size()) source.fail("is cut short in the header");
  };
  const std::size_t magic_bytes = source.read(std::span(start).first(8));
  if (magic_bytes < 8 || std::memcmp(start.data(), kMagic.data(), kMagic.size()) != 0) {
    source.fail("is not a NumPy array file (.npy)");
  }
  // Version 1 has 2 bytes for the header's length, versions 2 and 3 have 4.
  if (start[6] < 1 || start[6] > 3)
    source.fail("has version " + std::to_string(start[6]) + "; allowed: 1 to 3");
  const std::size_t length_bytes = start[6] == 1 ? 2 : 4;
  read(std::span(start).subspan(8, length_bytes));
  std::size_t length = 0;
  for (std::size_t i = length_bytes; i-- > 0;) length = length << 8 | start[8 + i];
  if (length > kMaxHeaderBytes) source.fail("has a header of " + std::to_string(length) + " bytes");
  std::string text(length, '\0');
  read(std::span(reinterpret_cast<std::uint8_t*>(text.data()), text.size()));
  return HeaderParser(text, source).parse();
}

}  // namespace

bool is_npy(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return first_bytes(path, kMagic.size()) == kMagic;
  return !files_with_ending(path, {".npy"}).empty();
}

NamedArray read_npy(const ByteSource& source) {
  const ArrayLayout layout = read_header(source);
  NamedArray array{{}, layout.shape, read_array_values(source, layout)};
  require_end(source, layout.shape);
  return array;
}

DataArrays read_npy_files(std::span<const fs::path> paths, const ReadOptions&) {
  DataArrays data;
  for (const fs::path& path : files_in(paths, {".npy"})) {
    InputFile file(path);
    data.arrays.push_back(read_npy(source_of(file)));
    data.arrays.back().name = path.stem().string();
    data.files.push_back({path, file.sha256()});
  }
  return data;
}

}  // namespace sweep
