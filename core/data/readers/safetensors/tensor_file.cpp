#include "core/data/readers/safetensors/tensor_file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/printable.h"
#include "core/json/json_text.h"

namespace sweep {
namespace {

constexpr std::size_t kAlignment = 64;  // a cache line, and the widest SIMD vector

using Json = nlohmann::ordered_json;

std::string shown(const Json& json) {
  constexpr std::size_t kLongest = 80;
  return shown_text(json.dump(-1, ' ', true, Json::error_handler_t::replace), kLongest);
}

// How messages name a tensor.
std::string place_of(const std::string& file, const std::string& tensor) {
  return fmt::format("{}: tensor \"{}\"", file, tensor);
}

// One entry of the header.
TensorEntry read_entry(const std::string& name, const Json& json, const std::string& file) {
  const std::string where = place_of(file, name);
  if (!json.is_object()) refuse(where, "its description is not an object");
  for (const char* key : {"dtype", "shape", "data_offsets"})
    if (!json.contains(key)) refuse(where, "its description has no \"{}\"", key);
  const Json &dtype = json.at("dtype"), &shape = json.at("shape"), &offsets = json.at("data_offsets");

  const std::span<const TypeRow> types = type_rows();
  const auto type = std::ranges::find_if(types, [&](const TypeRow& row) { return dtype == row.name; });
  if (type == types.end()) {
    std::string names;
    for (const TypeRow& row : types.first(types.size() - 1))
      names += (names.empty() ? "" : ", ") + std::string(row.name);
    refuse(where, "its dtype is {}; {} and {} can be read", shown(dtype), names, types.back().name);
  }
  TensorEntry entry{.name = name, .type = static_cast<TensorType>(type - types.begin()), .shape = {}};

  if (!shape.is_array()) refuse(where, "its shape is {}, not a list", shown(shape));
  std::uint64_t bytes = type->bytes;
  for (const Json& extent : shape) {
    constexpr auto kLargest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (!extent.is_number_unsigned() || extent.get<std::uint64_t>() > kLargest)
      refuse(where, "its shape has {}, expected an integer >= 0", shown(extent));
    entry.shape.push_back(extent.get<std::int64_t>());
    if (__builtin_mul_overflow(bytes, extent.get<std::uint64_t>(), &bytes))
      refuse(where, "its shape {} is too large", to_string(entry.shape));
  }

  if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
      !offsets[1].is_number_unsigned())
    refuse(where, "its data_offsets are {}, expected [begin, end]", shown(offsets));
  entry.begin = offsets[0].get<std::uint64_t>();
  entry.end = offsets[1].get<std::uint64_t>();
  if (entry.end < entry.begin || entry.end - entry.begin != bytes) {
    refuse(where, "its data_offsets are {}, but its shape {} needs {} bytes", shown(offsets),
           to_string(entry.shape), bytes);
  }
  return entry;
}

std::map<std::string, std::string> read_metadata(const Json& json, const std::string& name) {
  if (!json.is_object()) refuse(name, "\"__metadata__\" is not an object");
  std::map<std::string, std::string> metadata;
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string()) refuse(name, "\"__metadata__\" has \"{}\" that is not a string", key);
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

// The tensors' data must cover the file without gaps and overlaps, in any order.
void check_layout(const std::vector<TensorEntry>& entries, std::optional<std::uint64_t> data_bytes,
                  const std::string& name) {
  std::vector<const TensorEntry*> by_position;
  by_position.reserve(entries.size());
  for (const TensorEntry& entry : entries) by_position.push_back(&entry);
  std::ranges::sort(by_position, {}, [](const TensorEntry* e) { return std::pair(e->begin, e->end); });
  std::uint64_t position = 0;
  for (const TensorEntry* entry : by_position) {
    if (data_bytes && entry->end > *data_bytes) {
      refuse(place_of(name, entry->name),
             "its data ends at byte {}, but the file has only {} bytes of data: it is cut short", entry->end,
             *data_bytes);
    }
    if (entry->begin != position) {
      refuse(place_of(name, entry->name),
             "its data starts at byte {}, expected {}, where the tensor before it ends", entry->begin,
             position);
    }
    position = entry->end;
  }
  if (data_bytes && position != *data_bytes)
    refuse(name, "{} bytes follow the last tensor's data", *data_bytes - position);
}

}  // namespace

std::uint64_t tensor_header_bytes(std::string_view start, std::uint64_t file_bytes, const std::string& name) {
  if (start.size() < kTensorLengthBytes)
    refuse(name, "not a safetensors file: it has only {} bytes", start.size());
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, start.data(), sizeof bytes);
  if (bytes > kMaxTensorHeaderBytes) {
    refuse(name, "not a safetensors file: it starts with a header length of {} bytes, at most {} are allowed",
           bytes, kMaxTensorHeaderBytes);
  }
  if (const std::uint64_t rest = file_bytes - kTensorLengthBytes; bytes > rest)
    refuse(name, "cut short: its header has {} bytes, but only {} follow", bytes, rest);
  return bytes;
}

TensorHeader parse_tensor_header(std::string_view header, std::optional<std::uint64_t> data_bytes,
                                 const std::string& name) {
  if (!header.starts_with('{')) refuse(name, "not a safetensors file: its header is not a JSON object");
  constexpr std::size_t kMaxDepth = 8;  // The format needs 3.
  const Json json = parse_json_text(header, name + ": the header", kMaxDepth);
  TensorHeader parsed;
  for (const auto& [key, value] : json.items()) {
    if (key == kTensorMetadata)
      parsed.metadata = read_metadata(value, name);
    else
      parsed.tensors.push_back(read_entry(key, value, name));
  }
  check_layout(parsed.tensors, data_bytes, name);
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

TensorContent parse_tensor_file(std::string_view content, const std::string& name) {
  const std::uint64_t header_bytes = tensor_header_bytes(content, content.size(), name);
  content.remove_prefix(kTensorLengthBytes);
  const std::string_view data = content.substr(header_bytes);
  return {parse_tensor_header(content.substr(0, header_bytes), data.size(), name), data};
}

TensorWriter::TensorWriter(int fd, std::filesystem::path path) : fd_(fd), path_(std::move(path)) {
  if (::lseek(fd_, kHeaderRoom, SEEK_SET) < 0)
    refuse<IoError>(path_, "cannot write: {}", std::strerror(errno));
}

void TensorWriter::begin(const std::string& name, TensorType type) {
  if (const std::size_t over = written_ % kAlignment; over != 0) {
    const std::string zeros(kAlignment - over, '\0');
    header_.tensors.push_back(
        {"padding " + std::to_string(header_.tensors.size()), TensorType::kU8, {}, written_, 0});
    append(std::as_bytes(std::span(zeros)));
    end({static_cast<std::int64_t>(zeros.size())});
  }
  header_.tensors.push_back({name, type, {}, written_, 0});
}

void TensorWriter::append(std::span<const std::byte> bytes) {
  write_all(fd_, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path_);
  written_ += bytes.size();
}

void TensorWriter::end(const Shape& shape) {
  header_.tensors.back().shape = shape;
  header_.tensors.back().end = written_;
}

void TensorWriter::finish(const std::map<std::string, std::string>& metadata) {
  header_.metadata = metadata;
  std::string start(kTensorLengthBytes, '\0');
  const std::uint64_t header_bytes = kHeaderRoom - kTensorLengthBytes;
  std::memcpy(start.data(), &header_bytes, sizeof header_bytes);
  try {
    start += tensor_header_text(header_);
  } catch (const nlohmann::json::exception&) {
    refuse<IoError>(path_, "a name is not UTF-8");
  }
  if (start.size() > kHeaderRoom) refuse<IoError>(path_, "has too many arrays");
  start.resize(kHeaderRoom, ' ');
  const auto end = static_cast<off_t>(kHeaderRoom + written_);
  if (retry_interrupted([&] { return ::ftruncate(fd_, end); }) != 0 || ::lseek(fd_, 0, SEEK_SET) < 0)
    refuse<IoError>(path_, "cannot write: {}", std::strerror(errno));
  write_all(fd_, start, path_);
}

MappedTensors::MappedTensors(FileDescriptor file, MapUse use, std::string name)
    : name_(std::move(name)), file_(std::make_shared<const MappedFile>(std::move(file), use)) {
  const std::span<const std::uint8_t> bytes = file_->bytes();
  content_ = parse_tensor_file({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, name_);
}

const TensorEntry* MappedTensors::find(const std::string& name) const {
  const std::vector<TensorEntry>& tensors = content_.header.tensors;
  const auto found = std::ranges::find(tensors, name, &TensorEntry::name);
  return found == tensors.end() ? nullptr : &*found;
}

std::span<const std::uint8_t> MappedTensors::bytes_of_tensor(const std::string& name, TensorType type) const {
  const TensorEntry* entry = find(name);
  if (entry == nullptr) refuse(name_, "has no array {}", name);
  const std::string_view text = content_.data.substr(entry->begin, entry->end - entry->begin);
  const std::span bytes(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
  if (entry->type != type || reinterpret_cast<std::uintptr_t>(bytes.data()) % row_of(type).bytes != 0)
    refuse(name_, "array {} has values of another type", name);
  return bytes;
}

}  // namespace sweep
