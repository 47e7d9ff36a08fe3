#include "core/data/readers/readers.h"

#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "core/data/readers/safetensors/safetensors_header.h"

namespace sweep {
namespace {

// Far more than the few arrays of a data set need. A checkpoint may have more.
constexpr std::uint64_t kMaxDataHeaderBytes = 1 << 20;

// The first `count` bytes of what is left, or less at the end of the file.
std::string read_text(InputFile& file, std::size_t count) {
  std::string text(count, '\0');
  text.resize(file.read(std::span(reinterpret_cast<std::uint8_t*>(text.data()), text.size())));
  return text;
}

}  // namespace

bool is_safetensors(const std::filesystem::path& path) {
  const std::string start = first_bytes(path, kTensorLengthBytes + 1);
  if (start.size() <= kTensorLengthBytes || start.back() != '{') return false;
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, start.data(), sizeof header_bytes);
  return header_bytes <= kMaxTensorHeaderBytes;
}

std::vector<NamedArray> read_safetensors_arrays(InputFile& file) {
  const std::string& name = file.name();
  const std::uint64_t max_bytes = file.max_content();
  const std::string length = read_text(file, kTensorLengthBytes);
  const std::uint64_t header_bytes =
      tensor_header_bytes(length, std::max<std::uint64_t>(max_bytes, length.size()), name);
  if (header_bytes > kMaxDataHeaderBytes) {
    throw DataError(name + ": its header has " + std::to_string(header_bytes) +
                    " bytes; that of a data set has at most " + std::to_string(kMaxDataHeaderBytes));
  }
  const std::string text = read_text(file, static_cast<std::size_t>(header_bytes));
  if (text.size() < header_bytes) {
    throw DataError(name + ": cut short: its header has " + std::to_string(header_bytes) +
                    " bytes, but only " + std::to_string(text.size()) + " follow");
  }
  // How much follows is known only at the end, as the file may be compressed.
  TensorHeader header = parse_tensor_header(text, {}, name);
  std::ranges::sort(header.tensors, {},
                    [](const TensorEntry& entry) { return std::pair(entry.begin, entry.end); });
  std::vector<NamedArray> arrays;
  for (const TensorEntry& entry : header.tensors) {
    const ByteSource source = {[&](std::span<std::uint8_t> out) { return file.read(out); }, max_bytes,
                               name + ": tensor " + quoted_name(entry.name)};
    arrays.push_back(read_array(source, {.type = entry.type, .shape = entry.shape}));
    arrays.back().name = entry.name;
  }
  if (!read_text(file, 1).empty())
    throw DataError(name + ": is too long: more follows the last tensor's data");
  return arrays;
}

DataArrays read_safetensors_data(std::span<const std::filesystem::path> paths, const ReadOptions&) {
  InputFile file(only_path(paths, "safetensors"));
  DataArrays data{read_safetensors_arrays(file)};
  data.files = {{paths.front(), file.sha256()}};
  return data;
}

}  // namespace sweep
