#include "core/data/readers/safetensors/safetensors_header.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/error.h"
#include "core/json/json_text.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

static_assert(std::endian::native == std::endian::little, "tensors are stored as little-endian values");

struct TypeRow {
  const char* name;  // the format calls it dtype
  std::size_t bytes;
};

// In the enum's order.
constexpr TypeRow kTypes[] = {{"BOOL", 1}, {"U8", 1},   {"I8", 1},  {"U16", 2}, {"I16", 2},
                              {"F16", 2},  {"BF16", 2}, {"U32", 4}, {"I32", 4}, {"F32", 4},
                              {"U64", 8},  {"I64", 8},  {"F64", 8}};

const TypeRow& row_of(TensorType type) { return kTypes[static_cast<std::size_t>(type)]; }

// One entry of the header. Messages begin with the names of the file and the tensor.
class Entry {
 public:
  Entry(const std::string& file, const std::string& name, const Json& json,
        std::span<const TensorType> allowed)
      : where_(file + ": tensor \"" + name + "\"") {
    entry_.name = name;
    if (!json.is_object()) throw DataError(where_ + ": its description is not an object");
    read_type(member(json, "dtype"), allowed);
    read_shape(member(json, "shape"));
    read_offsets(member(json, "data_offsets"));
  }

  const TensorEntry& entry() const { return entry_; }
  std::uint64_t begin() const { return entry_.begin; }
  std::uint64_t end() const { return entry_.end; }

  /// `expected` is the end of the tensor before it.
  void check_position(std::uint64_t expected, std::optional<std::uint64_t> data_bytes) const {
    if (data_bytes && entry_.end > *data_bytes) {
      throw DataError(where_ + ": its data ends at byte " + std::to_string(entry_.end) +
                      ", but the file has only " + std::to_string(*data_bytes) +
                      " bytes of data: it is cut short");
    }
    if (entry_.begin != expected) {
      throw DataError(where_ + ": its data starts at byte " + std::to_string(entry_.begin) + ", expected " +
                      std::to_string(expected) + ", where the tensor before it ends");
    }
  }

 private:
  const Json& member(const Json& json, const char* key) const {
    const auto found = json.find(key);
    if (found == json.end()) throw DataError(where_ + ": its description has no \"" + key + "\"");
    return *found;
  }

  void read_type(const Json& json, std::span<const TensorType> allowed) {
    std::string names;
    for (std::size_t i = 0; i < allowed.size(); ++i) {
      const char* name = row_of(allowed[i]).name;
      if (json == name) {
        entry_.type = allowed[i];
        return;
      }
      names += (i == 0 ? "" : i + 1 < allowed.size() ? ", " : " and ") + std::string(name);
    }
    throw DataError(where_ + ": its dtype is " + shown(json) + "; " + names + " can be read");
  }

  void read_shape(const Json& json) {
    std::uint64_t bytes = bytes_of(entry_.type);
    if (!json.is_array()) throw DataError(where_ + ": its shape is " + shown(json) + ", not a list");
    for (const Json& extent : json) {
      constexpr auto kLargest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
      if (!extent.is_number_unsigned() || extent.get<std::uint64_t>() > kLargest) {
        throw DataError(where_ + ": its shape has " + shown(extent) + ", expected an integer >= 0");
      }
      entry_.shape.push_back(extent.get<std::int64_t>());
      if (__builtin_mul_overflow(bytes, extent.get<std::uint64_t>(), &bytes)) {
        throw DataError(where_ + ": its shape " + to_string(entry_.shape) + " is too large");
      }
    }
    bytes_ = bytes;
  }

  void read_offsets(const Json& json) {
    if (!json.is_array() || json.size() != 2 || !json[0].is_number_unsigned() ||
        !json[1].is_number_unsigned()) {
      throw DataError(where_ + ": its data_offsets are " + shown(json) + ", expected [begin, end]");
    }
    entry_.begin = json[0].get<std::uint64_t>();
    entry_.end = json[1].get<std::uint64_t>();
    if (entry_.end < entry_.begin || entry_.end - entry_.begin != bytes_) {
      throw DataError(where_ + ": its data_offsets are " + shown(json) + ", but its shape " +
                      to_string(entry_.shape) + " needs " + std::to_string(bytes_) + " bytes");
    }
  }

  static std::string shown(const Json& json) {
    constexpr std::size_t kLongest = 80;
    std::string text = json.dump(-1, ' ', true, Json::error_handler_t::replace);
    return text.size() <= kLongest ? text : text.substr(0, kLongest) + "…";
  }

  std::string where_;
  TensorEntry entry_;
  std::uint64_t bytes_ = 0;
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
void check_layout(const std::vector<Entry>& entries, std::optional<std::uint64_t> data_bytes,
                  const std::string& name) {
  std::vector<const Entry*> by_position;
  by_position.reserve(entries.size());
  for (const Entry& entry : entries) by_position.push_back(&entry);
  std::sort(by_position.begin(), by_position.end(), [](const Entry* a, const Entry* b) {
    return std::pair(a->begin(), a->end()) < std::pair(b->begin(), b->end());
  });
  std::uint64_t position = 0;
  for (const Entry* entry : by_position) {
    entry->check_position(position, data_bytes);
    position = entry->end();
  }
  if (data_bytes && position != *data_bytes) {
    throw DataError(name + ": " + std::to_string(*data_bytes - position) +
                    " bytes follow the last tensor's data");
  }
}

}  // namespace

std::size_t bytes_of(TensorType type) { return row_of(type).bytes; }

std::uint64_t tensor_header_bytes(std::string_view start, std::uint64_t file_bytes, const std::string& name) {
  if (start.size() < kTensorLengthBytes) {
    throw DataError(name + ": not a safetensors file: it has only " + std::to_string(start.size()) +
                    " bytes");
  }
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, start.data(), sizeof bytes);
  if (bytes > kMaxTensorHeaderBytes) {
    throw DataError(name + ": not a safetensors file: it starts with a header length of " +
                    std::to_string(bytes) + " bytes, at most " + std::to_string(kMaxTensorHeaderBytes) +
                    " are allowed");
  }
  if (bytes > file_bytes - kTensorLengthBytes) {
    throw DataError(name + ": cut short: its header has " + std::to_string(bytes) + " bytes, but only " +
                    std::to_string(file_bytes - kTensorLengthBytes) + " follow");
  }
  return bytes;
}

TensorHeader parse_tensor_header(std::string_view header, std::optional<std::uint64_t> data_bytes,
                                 std::span<const TensorType> allowed, const std::string& name) {
  if (!header.starts_with('{'))
    throw DataError(name + ": not a safetensors file: its header is not a JSON object");
  constexpr std::size_t kMaxDepth = 8;  // The format needs 3.
  const Json json = parse_json_text(header, name + ": the header", kMaxDepth);
  TensorHeader parsed;
  std::vector<Entry> entries;
  for (const auto& [key, value] : json.items()) {
    if (key == kTensorMetadata)
      parsed.metadata = read_metadata(value, name);
    else
      entries.emplace_back(name, key, value, allowed);
  }
  check_layout(entries, data_bytes, name);
  parsed.tensors.reserve(entries.size());
  for (const Entry& entry : entries) parsed.tensors.push_back(entry.entry());
  return parsed;
}

std::string tensor_header_text(const TensorHeader& header) {
  Json json = Json::object();
  if (!header.metadata.empty()) json[kTensorMetadata] = header.metadata;
  for (const TensorEntry& entry : header.tensors) {
    // Not json[name] = …: ordered_json would search all names each time.
    json.get_ref<Json::object_t&>().emplace_back(entry.name,
                                                 Json{{"dtype", row_of(entry.type).name},
                                                      {"shape", entry.shape},
                                                      {"data_offsets", {entry.begin, entry.end}}});
  }
  return json.dump();
}

}  // namespace sweep
