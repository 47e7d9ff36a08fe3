// Writes safetensors files; their layout: readers/safetensors/safetensors_header.h.
#include <cstdint>
#include <cstring>
#include <deque>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/data/readers/safetensors/safetensors_header.h"
#include "core/data/safetensors.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

// The file as the list of buffers that writes it. Short texts are joined into one buffer; long ones and
// values are referenced, not copied.
class FileParts {
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
  bool open_ = false;  // the last part is texts_.back(), which may be appended to
};

std::string member_begin(const std::string& name, bool first) {
  return (first ? "" : ",") + Json(name).dump() + ":\"";
}

// `tensors` is the header without the metadata.
void add_header(FileParts& parts, const TensorFileView& file, const TensorHeader& tensors) {
  const std::string rest = tensor_header_text(tensors);
  if (file.metadata.empty() && file.escaped_metadata.empty()) {
    parts.add(rest);
    return;
  }
  parts.add("{\"" + std::string(kTensorMetadata) + "\":{");
  bool first = true;
  for (const auto& [name, value] : file.metadata)
    parts.add(member_begin(name, std::exchange(first, false)) + escaped_text(value) + "\"");
  for (const auto& [name, value] : file.escaped_metadata) {
    parts.add(member_begin(name, std::exchange(first, false)));
    parts.add_view(value);
    parts.add("\"");
  }
  parts.add((tensors.tensors.empty() ? "}" : "},") + rest.substr(1));
}

}  // namespace

std::string escaped_text(const std::string& text) {
  const std::string quoted = Json(text).dump();
  return quoted.substr(1, quoted.size() - 2);
}

void write_safetensors(const std::filesystem::path& path, const TensorFileView& file, Survives survives) {
  TensorHeader header;
  std::uint64_t offset = 0;
  std::set<std::string_view> names;
  for (const TensorView& tensor : file.tensors) {
    const std::string where = path.string() + ": tensor \"" + tensor.name + "\"";
    if (tensor.name == kTensorMetadata) throw DataError(where + ": the format reserves this name");
    if (!names.insert(tensor.name).second) throw DataError(where + ": the name is used twice");
    if (tensor.values.size() != element_count(tensor.shape)) {
      throw DataError(where + ": has " + std::to_string(tensor.values.size()) + " values, its shape " +
                      to_string(tensor.shape) + " needs " + std::to_string(element_count(tensor.shape)));
    }
    const std::uint64_t end = offset + tensor.values.size() * sizeof(float);
    header.tensors.push_back({tensor.name, TensorType::kF32, tensor.shape, offset, end});
    offset = end;
  }
  FileParts parts;
  std::string length(kTensorLengthBytes, '\0');
  parts.add_view(length);
  try {
    add_header(parts, file, header);
  } catch (const Json::exception& error) {
    throw DataError(path.string() + ": a tensor's name or the metadata is not valid UTF-8: " + error.what());
  }
  // Spaces align the data.
  parts.add(std::string((kTensorLengthBytes - parts.size() % kTensorLengthBytes) % kTensorLengthBytes, ' '));
  const std::uint64_t header_bytes = parts.size() - kTensorLengthBytes;
  std::memcpy(length.data(), &header_bytes, kTensorLengthBytes);
  for (const TensorView& tensor : file.tensors) parts.add_values(tensor.values);
  write_file_atomically(path, parts.parts(), survives);
}

void write_safetensors(const std::filesystem::path& path, const TensorFile& file, Survives survives) {
  TensorFileView view;
  for (const NamedTensor& tensor : file.tensors)
    view.tensors.push_back({tensor.name, tensor.shape, tensor.values});
  view.metadata = file.metadata;
  write_safetensors(path, view, survives);
}

}  // namespace sweep
