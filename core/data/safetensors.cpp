// Layout of a file: 8 bytes, the little-endian length of the header; the header, JSON: {"name": {"dtype",
// "shape", "data_offsets": [begin, end]}, …, "__metadata__": {string: string}}; the data. Offsets count from
// the start of the data, which the tensors cover without gaps or overlaps.
// https://huggingface.co/docs/safetensors
//
// Files may come from anywhere, so nothing in the header is trusted: its length, its depth, duplicate keys,
// products of extents and offsets are checked before memory is allocated for them.
#include "core/data/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/json/json_text.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

static_assert(std::endian::native == std::endian::little, "tensors are stored as little-endian values");

constexpr std::size_t kLengthBytes = 8;
constexpr std::uint64_t kMaxHeader = 100'000'000;  // bytes; the limit of the reference implementation
constexpr char kMetadata[] = "__metadata__";

// The format calls it dtype. Only types that convert to float.
enum class DType { kF64, kF32, kF16, kBf16, kI64 };

std::size_t bytes_of(DType type) {
  switch (type) {
    case DType::kF64:
    case DType::kI64:
      return 8;
    case DType::kF32:
      return 4;
    case DType::kF16:
    case DType::kBf16:
      return 2;
  }
  return 0;
}

template <typename T>
T load(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);  // The data may be unaligned.
  return value;
}

// IEEE 754 binary16. 112 is the difference of the exponents' biases, 127 − 15; subnormal
// halves are multiples of 2^-24.
float from_half(std::uint16_t half) {
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

float from_double(double value) {
  // The conversion of a double outside the range of float is undefined; it becomes infinity here.
  if (value > std::numeric_limits<float>::max()) return std::numeric_limits<float>::infinity();
  if (value < -std::numeric_limits<float>::max()) return -std::numeric_limits<float>::infinity();
  return static_cast<float>(value);
}

std::vector<float> convert(std::string_view data, DType type) {
  std::vector<float> values(data.size() / bytes_of(type));
  if (type == DType::kF32) {
    if (!values.empty()) std::memcpy(values.data(), data.data(), data.size());
    return values;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const char* bytes = data.data() + i * bytes_of(type);
    if (type == DType::kF64) values[i] = from_double(load<double>(bytes));
    if (type == DType::kI64) values[i] = static_cast<float>(load<std::int64_t>(bytes));
    if (type == DType::kF16) values[i] = from_half(load<std::uint16_t>(bytes));
    if (type == DType::kBf16)
      values[i] = std::bit_cast<float>(static_cast<std::uint32_t>(load<std::uint16_t>(bytes)) << 16);
  }
  return values;
}

// One entry of the header. Messages begin with the names of the file and the tensor.
class Entry {
 public:
  Entry(const std::string& file, const std::string& name, const Json& json)
      : where_(file + ": tensor \"" + name + "\""), name_(name) {
    if (!json.is_object()) throw DataError(where_ + ": its description is not an object");
    read_type(member(json, "dtype"));
    read_shape(member(json, "shape"));
    read_offsets(member(json, "data_offsets"));
  }

  std::uint64_t begin() const { return begin_; }
  std::uint64_t end() const { return end_; }

  /// `expected` is the end of the tensor before it.
  void check_position(std::uint64_t expected, std::uint64_t data_bytes) const {
    if (end_ > data_bytes) {
      throw DataError(where_ + ": its data ends at byte " + std::to_string(end_) +
                      ", but the file has only " + std::to_string(data_bytes) +
                      " bytes of data: it is cut short");
    }
    if (begin_ != expected) {
      throw DataError(where_ + ": its data starts at byte " + std::to_string(begin_) + ", expected " +
                      std::to_string(expected) + ", where the tensor before it ends");
    }
  }

  NamedTensor tensor(std::string_view data) const {
    return {name_, shape_, convert(data.substr(begin_, end_ - begin_), type_)};
  }

 private:
  const Json& member(const Json& json, const char* key) const {
    const auto found = json.find(key);
    if (found == json.end()) throw DataError(where_ + ": its description has no \"" + key + "\"");
    return *found;
  }

  void read_type(const Json& json) {
    if (json == "F64")
      type_ = DType::kF64;
    else if (json == "F32")
      type_ = DType::kF32;
    else if (json == "F16")
      type_ = DType::kF16;
    else if (json == "BF16")
      type_ = DType::kBf16;
    else if (json == "I64")
      type_ = DType::kI64;
    else
      throw DataError(where_ + ": its dtype is " + shown(json) + "; F32, F64, F16, BF16 and I64 can be read");
  }

  void read_shape(const Json& json) {
    std::uint64_t bytes = bytes_of(type_);
    if (!json.is_array()) throw DataError(where_ + ": its shape is " + shown(json) + ", not a list");
    for (const Json& extent : json) {
      constexpr auto kLargest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
      if (!extent.is_number_unsigned() || extent.get<std::uint64_t>() > kLargest) {
        throw DataError(where_ + ": its shape has " + shown(extent) + ", expected an integer >= 0");
      }
      shape_.push_back(extent.get<std::int64_t>());
      if (__builtin_mul_overflow(bytes, extent.get<std::uint64_t>(), &bytes)) {
        throw DataError(where_ + ": its shape " + to_string(shape_) + " is too large");
      }
    }
    bytes_ = bytes;
  }

  void read_offsets(const Json& json) {
    if (!json.is_array() || json.size() != 2 || !json[0].is_number_unsigned() ||
        !json[1].is_number_unsigned()) {
      throw DataError(where_ + ": its data_offsets are " + shown(json) + ", expected [begin, end]");
    }
    begin_ = json[0].get<std::uint64_t>();
    end_ = json[1].get<std::uint64_t>();
    if (end_ < begin_ || end_ - begin_ != bytes_) {
      throw DataError(where_ + ": its data_offsets are " + shown(json) + ", but its shape " +
                      to_string(shape_) + " needs " + std::to_string(bytes_) + " bytes");
    }
  }

  static std::string shown(const Json& json) {
    constexpr std::size_t kLongest = 80;
    std::string text = json.dump(-1, ' ', true, Json::error_handler_t::replace);
    return text.size() <= kLongest ? text : text.substr(0, kLongest) + "…";
  }

  std::string where_;
  std::string name_;
  DType type_ = DType::kF32;
  Shape shape_;
  std::uint64_t bytes_ = 0;
  std::uint64_t begin_ = 0;  // from the start of the data
  std::uint64_t end_ = 0;
};

std::map<std::string, std::string> read_metadata(const Json& json, const std::string& name) {
  if (!json.is_object()) throw DataError(name + ": \"__metadata__\" is not an object");
  std::map<std::string, std::string> metadata;
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string())
      throw DataError(name + ": \"__metadata__\" has \"" + key + "\" that is not a string");
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

// The tensors' data must cover the file without gaps and overlaps, in any order.
void check_layout(const std::vector<Entry>& entries, std::uint64_t data_bytes, const std::string& name) {
  std::vector<const Entry*> by_position;
  for (const Entry& entry : entries) by_position.push_back(&entry);
  std::sort(by_position.begin(), by_position.end(), [](const Entry* a, const Entry* b) {
    return std::pair(a->begin(), a->end()) < std::pair(b->begin(), b->end());
  });
  std::uint64_t position = 0;
  for (const Entry* entry : by_position) {
    entry->check_position(position, data_bytes);
    position = entry->end();
  }
  if (position != data_bytes) {
    throw DataError(name + ": " + std::to_string(data_bytes - position) +
                    " bytes follow the last tensor's data");
  }
}

}  // namespace

const NamedTensor* TensorFile::find(std::string_view name) const {
  const auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const NamedTensor& t) { return t.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

TensorFile parse_safetensors(std::string_view content, const std::string& name) {
  if (content.size() < kLengthBytes) {
    throw DataError(name + ": not a safetensors file: it has only " + std::to_string(content.size()) +
                    " bytes");
  }
  const auto header_bytes = load<std::uint64_t>(content.data());
  content.remove_prefix(kLengthBytes);
  if (header_bytes > kMaxHeader) {
    throw DataError(name + ": not a safetensors file: it starts with a header length of " +
                    std::to_string(header_bytes) + " bytes, at most " + std::to_string(kMaxHeader) +
                    " are allowed");
  }
  if (header_bytes > content.size()) {
    throw DataError(name + ": cut short: its header has " + std::to_string(header_bytes) +
                    " bytes, but only " + std::to_string(content.size()) + " follow");
  }
  const std::string_view header = content.substr(0, header_bytes);
  const std::string_view data = content.substr(header_bytes);
  if (!header.starts_with('{'))
    throw DataError(name + ": not a safetensors file: its header is not a JSON object");

  constexpr std::size_t kMaxDepth = 8;  // The format needs 3.
  const Json json = parse_json_text(header, name + ": the header", kMaxDepth);
  TensorFile file;
  std::vector<Entry> entries;
  for (const auto& [key, value] : json.items()) {
    if (key == kMetadata)
      file.metadata = read_metadata(value, name);
    else
      entries.emplace_back(name, key, value);
  }
  check_layout(entries, data.size(), name);
  file.tensors.reserve(entries.size());
  for (const Entry& entry : entries) file.tensors.push_back(entry.tensor(data));
  return file;
}

TensorFile read_safetensors(const std::filesystem::path& path) {
  return parse_safetensors(read_file(path), path.string());
}

}  // namespace sweep
