#include "core/data/readers/readers.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/error.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMaxHeaderBytes = 64 << 10;
constexpr std::size_t kMaxDimensions = 8;
constexpr std::pair<std::string_view, TensorType> kTypeCodes[] = {
    {"b1", TensorType::kBool}, {"u1", TensorType::kU8},  {"u2", TensorType::kU16}, {"u4", TensorType::kU32},
    {"u8", TensorType::kU64},  {"i1", TensorType::kI8},  {"i2", TensorType::kI16}, {"i4", TensorType::kI32},
    {"i8", TensorType::kI64},  {"f2", TensorType::kF16}, {"f4", TensorType::kF32}, {"f8", TensorType::kF64}};
constexpr const char* kAllowed = "allowed: bool, integers, float16, float32, float64";

// A dictionary in Python's notation as JSON, which has neither tuples nor a comma before the end.
std::string as_json(std::string_view python) {
  std::string json;
  bool in_string = false;
  for (char c : python) {
    if (c == '\'' || c == '"') in_string = !in_string;
    if (c == '\'') c = '"';
    if (!in_string && (c == ')' || c == '}')) {
      json.resize(json.find_last_not_of(" \n,") + 1);
    } else if (!in_string && c == 'L') {
      continue;  // "3L", written by Python 2
    }
    json += in_string ? c : c == '(' ? '[' : c == ')' ? ']' : c == 'T' ? 't' : c == 'F' ? 'f' : c;
  }
  return json;
}

// "<f4": byte order, kind, bytes.
void set_type(const std::string& type, ArrayLayout& layout, const ByteSource& source) {
  std::string_view code = type;
  layout.big_endian = code.starts_with('>');
  if (code.find_first_of("<>|=") == 0) code.remove_prefix(1);
  if (code.starts_with('O')) {
    refuse<UnusableArray>(source.name,
                          "holds Python objects, which are never loaded, as they could run programs; {}",
                          kAllowed);
  }
  const auto found = std::ranges::find(kTypeCodes, code, &std::pair<std::string_view, TensorType>::first);
  if (found == std::end(kTypeCodes))
    refuse<UnusableArray>(source.name, "holds values of type \"{}\"; {}", type, kAllowed);
  layout.type = found->second;
}

Shape parse_shape(const nlohmann::json& json, const ByteSource& source) {
  if (!json.is_array()) refuse(source.name, "the header is damaged: expected '('");
  if (json.size() > kMaxDimensions) refuse(source.name, "has more than {} dimensions", kMaxDimensions);
  Shape shape;
  for (const nlohmann::json& extent : json) {
    const bool is_extent = extent.is_number_unsigned() && extent.get<std::int64_t>() >= 0;
    if (!is_extent) refuse(source.name, "the header is damaged: expected an extent");
    shape.push_back(extent.get<std::int64_t>());
  }
  return shape;
}

// The header: a dictionary with the keys descr, fortran_order and shape.
ArrayLayout parse_header(std::string_view text, const ByteSource& source) {
  if (!text.starts_with('{')) refuse(source.name, "the header is damaged: expected '{{'");
  if (text.find("'descr': [") != std::string_view::npos)
    refuse<UnusableArray>(source.name, "holds structures with fields; {}", kAllowed);
  const nlohmann::json header = nlohmann::json::parse(as_json(text), nullptr, false);
  if (!header.is_object()) refuse(source.name, "the header is damaged: it is no dictionary");
  ArrayLayout layout;
  for (const auto& [key, value] : header.items()) {
    if (key == "descr") {
      if (!value.is_string()) refuse(source.name, "the header is damaged: expected a string");
      set_type(value.get<std::string>(), layout, source);
    } else if (key == "fortran_order") {
      if (!value.is_boolean()) refuse(source.name, "the header is damaged: expected True or False");
      layout.fortran_order = value.get<bool>();
    } else if (key == "shape") {
      layout.shape = parse_shape(value, source);
    } else {
      refuse(source.name, "the header has an unknown key \"{}\"", key);
    }
  }
  if (header.size() < 3) refuse(source.name, "the header is incomplete");
  return layout;
}

ArrayLayout read_header(const ByteSource& source) {
  std::array<std::uint8_t, 12> start{};
  const auto read = [&](std::span<std::uint8_t> out) {
    if (source.read(out) < out.size()) refuse(source.name, "is cut short in the header");
  };
  const std::size_t magic_bytes = source.read(std::span(start).first(8));
  if (magic_bytes < 8 || std::memcmp(start.data(), kMagic.data(), kMagic.size()) != 0)
    refuse(source.name, "is not a NumPy array file (.npy)");
  // Version 1 has 2 bytes for the header's length, versions 2 and 3 have 4.
  if (start[6] < 1 || start[6] > 3) refuse(source.name, "has version {}; allowed: 1 to 3", start[6]);
  const std::size_t length_bytes = start[6] == 1 ? 2 : 4;
  read(std::span(start).subspan(8, length_bytes));
  std::size_t length = 0;
  for (std::size_t i = length_bytes; i-- > 0;) length = length << 8 | start[8 + i];
  if (length > kMaxHeaderBytes) refuse(source.name, "has a header of {} bytes", length);
  std::string text(length, '\0');
  read(std::span(reinterpret_cast<std::uint8_t*>(text.data()), text.size()));
  return parse_header(text, source);
}

}  // namespace

bool is_npy(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return first_bytes(path, kMagic.size()) == kMagic;
  return !files_with_ending(path, {".npy"}).empty();
}

NamedArray read_npy(const ByteSource& source) {
  const ArrayLayout layout = read_header(source);
  NamedArray array = read_array(source, layout);
  require_end(source, layout.shape);
  return array;
}

DataArrays read_npy_files(std::span<const fs::path> paths, const ReadOptions&) {
  DataArrays data;
  for (const fs::path& path : files_in(paths, {".npy"})) {
    InputFile file(path);
    data.arrays.push_back(array_or_problem([&] { return read_npy(source_of(file)); }));
    data.arrays.back().name = path.stem().string();
    data.files.push_back({path, file.sha256()});
  }
  return data;
}

}  // namespace sweep
