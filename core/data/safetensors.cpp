// A file is: 8 bytes, little-endian length of the header; the header, JSON: {"name": {"dtype", "shape",
// "data_offsets": [begin, end]}, …, "__metadata__": {string: string}}; the data, which the tensors fill
// without gaps or overlaps. https://huggingface.co/docs/safetensors
#include "core/data/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <deque>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/file.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

static_assert(std::endian::native == std::endian::little, "tensors are stored as little-endian values");

constexpr std::size_t kLengthBytes = 8;
constexpr std::uint64_t kLargestHeader = 100'000'000;  // the limit of the format's own reader
constexpr char kMetadata[] = "__metadata__";

enum class ValueType { kF64, kF32, kF16, kBf16, kI64 };

std::size_t bytes_of(ValueType type) {
  switch (type) {
    case ValueType::kF64:
    case ValueType::kI64:
      return 8;
    case ValueType::kF32:
      return 4;
    case ValueType::kF16:
    case ValueType::kBf16:
      return 2;
  }
  return 0;
}

template <typename T>
T load(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);  // Nothing says that the data is aligned.
  return value;
}

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
  // Too large a double is infinity in float; the conversion itself is undefined for it.
  if (value > std::numeric_limits<float>::max()) return std::numeric_limits<float>::infinity();
  if (value < -std::numeric_limits<float>::max()) return -std::numeric_limits<float>::infinity();
  return static_cast<float>(value);
}

std::vector<float> convert(std::string_view data, ValueType type) {
  std::vector<float> values(data.size() / bytes_of(type));
  if (type == ValueType::kF32) {
    if (!values.empty()) std::memcpy(values.data(), data.data(), data.size());
    return values;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const char* bytes = data.data() + i * bytes_of(type);
    if (type == ValueType::kF64) values[i] = from_double(load<double>(bytes));
    if (type == ValueType::kI64) values[i] = static_cast<float>(load<std::int64_t>(bytes));
    if (type == ValueType::kF16) values[i] = from_half(load<std::uint16_t>(bytes));
    if (type == ValueType::kBf16)
      values[i] = std::bit_cast<float>(static_cast<std::uint32_t>(load<std::uint16_t>(bytes)) << 16);
  }
  return values;
}

// Parses the header, refusing a key that an object has twice, which nlohmann::json would silently overwrite.
Json parse_header(std::string_view text, const std::string& name) {
  constexpr int kDeepest = 8;  // The format needs 3; a deeper one is an attack or damage.
  std::vector<std::set<std::string>> keys;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > kDeepest) throw DataError(name + ": the header is nested too deeply");
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second) {
      throw DataError(name + ": the header has the key \"" + parsed.get<std::string>() + "\" twice");
    }
    return true;
  };
  try {
    return Json::parse(text, watch);
  } catch (const Json::exception& error) {
    throw DataError(name + ": the header is not valid JSON: " + error.what());
  }
}

// One entry of the header. Messages start with the file's and the tensor's name.
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

  /// `expected` is where the tensor before it ends.
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
      type_ = ValueType::kF64;
    else if (json == "F32")
      type_ = ValueType::kF32;
    else if (json == "F16")
      type_ = ValueType::kF16;
    else if (json == "BF16")
      type_ = ValueType::kBf16;
    else if (json == "I64")
      type_ = ValueType::kI64;
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
  ValueType type_ = ValueType::kF32;
  Shape shape_;
  std::uint64_t bytes_ = 0;
  std::uint64_t begin_ = 0;  // in the data behind the header
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

// The tensors' data must fill the file: in any order, without gaps and overlaps.
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

// The file in the pieces that it is written in: short texts are put together, long ones are not copied.
class Pieces {
 public:
  void add(std::string_view text) {
    if (open_) {
      texts_.back() += text;
      parts_.back() = texts_.back();
    } else {
      parts_.push_back(texts_.emplace_back(text));
      open_ = true;
    }
  }
  void add_view(std::string_view text) {
    parts_.push_back(text);
    open_ = false;
  }

  void add_values(std::span<const float> values) {
    const std::string_view bytes(reinterpret_cast<const char*>(values.data()), values.size_bytes());
    if (bytes.empty()) return;
    const std::string_view last = parts_.back();
    if (!open_ && last.data() + last.size() == bytes.data()) {
      parts_.back() = {last.data(), last.size() + bytes.size()};
    } else {
      add_view(bytes);
    }
  }

  std::size_t size() const {
    std::size_t bytes = 0;
    for (const std::string_view part : parts_) bytes += part.size();
    return bytes;
  }

  std::span<const std::string_view> parts() const { return parts_; }

 private:
  std::deque<std::string> texts_;
  std::vector<std::string_view> parts_;
  bool open_ = false;  // the last part is the last text
};

std::string member_begin(const std::string& name, bool first) {
  return (first ? "" : ",") + Json(name).dump() + ":\"";
}

// `tensors` is all of the header but its metadata.
void add_header(Pieces& pieces, const TensorFileView& file, const Json& tensors) {
  const std::string rest = tensors.dump();
  if (file.metadata.empty() && file.escaped_metadata.empty()) {
    pieces.add(rest);
    return;
  }
  pieces.add("{\"" + std::string(kMetadata) + "\":{");
  bool first = true;
  for (const auto& [name, value] : file.metadata)
    pieces.add(member_begin(name, std::exchange(first, false)) + escaped_text(value) + "\"");
  for (const auto& [name, value] : file.escaped_metadata) {
    pieces.add(member_begin(name, std::exchange(first, false)));
    pieces.add_view(value);
    pieces.add("\"");
  }
  pieces.add((tensors.empty() ? "}" : "},") + rest.substr(1));
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
  if (header_bytes > kLargestHeader) {
    throw DataError(name + ": not a safetensors file: it starts with a header length of " +
                    std::to_string(header_bytes) + " bytes, at most " + std::to_string(kLargestHeader) +
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

  const Json json = parse_header(header, name);
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

std::string escaped_text(const std::string& text) {
  const std::string quoted = Json(text).dump();
  return quoted.substr(1, quoted.size() - 2);
}

void write_safetensors(const std::filesystem::path& path, const TensorFileView& file, Survives survives) {
  Json header = Json::object();
  std::uint64_t offset = 0;
  std::set<std::string_view> names;
  for (const TensorView& tensor : file.tensors) {
    const std::string where = path.string() + ": tensor \"" + tensor.name + "\"";
    if (tensor.name == kMetadata) throw DataError(where + ": the format reserves this name");
    if (!names.insert(tensor.name).second) throw DataError(where + ": the name is used twice");
    if (tensor.values.size() != element_count(tensor.shape)) {
      throw DataError(where + ": has " + std::to_string(tensor.values.size()) + " values, its shape " +
                      to_string(tensor.shape) + " needs " + std::to_string(element_count(tensor.shape)));
    }
    const std::uint64_t end = offset + tensor.values.size() * sizeof(float);
    // Not header[name] = ….: ordered_json looks for the name from the start each time.
    header.get_ref<Json::object_t&>().emplace_back(
        tensor.name, Json{{"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}});
    offset = end;
  }
  Pieces pieces;
  std::string length(kLengthBytes, '\0');
  pieces.add_view(length);
  try {
    add_header(pieces, file, header);
  } catch (const Json::exception& error) {
    throw DataError(path.string() + ": a tensor's name or the metadata is not valid UTF-8: " + error.what());
  }
  pieces.add(
      std::string((kLengthBytes - pieces.size() % kLengthBytes) % kLengthBytes, ' '));  // aligns the data
  const std::uint64_t header_bytes = pieces.size() - kLengthBytes;
  std::memcpy(length.data(), &header_bytes, kLengthBytes);
  for (const TensorView& tensor : file.tensors) pieces.add_values(tensor.values);
  write_file_atomically(path, pieces.parts(), survives);
}

void write_safetensors(const std::filesystem::path& path, const TensorFile& file, Survives survives) {
  TensorFileView view;
  for (const NamedTensor& tensor : file.tensors)
    view.tensors.push_back({tensor.name, tensor.shape, tensor.values});
  view.metadata = file.metadata;
  write_safetensors(path, view, survives);
}

}  // namespace sweep
