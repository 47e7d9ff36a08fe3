#include "core/data/readers/readers.h"

#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "core/data/readers/safetensors/tensor_file.h"

namespace sweep {
namespace {

// Far more than the few arrays of a data set need. A checkpoint may have more.
constexpr std::uint64_t kMaxDataHeaderBytes = 1 << 20;

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
  const std::string length = file.read_text(kTensorLengthBytes);
  const std::uint64_t header_bytes =
      tensor_header_bytes(length, std::max<std::uint64_t>(max_bytes, length.size()), name);
  if (header_bytes > kMaxDataHeaderBytes) {
    refuse(name, "its header has {} bytes; that of a data set has at most {}", header_bytes,
           kMaxDataHeaderBytes);
  }
  const std::string text = file.read_text(static_cast<std::size_t>(header_bytes));
  if (text.size() < header_bytes)
    refuse(name, "cut short: its header has {} bytes, but only {} follow", header_bytes, text.size());
  // How much follows is known only at the end, as the file may be compressed.
  TensorHeader header = parse_tensor_header(text, {}, name);
  std::ranges::sort(header.tensors, {},
                    [](const TensorEntry& entry) { return std::pair(entry.begin, entry.end); });
  std::vector<NamedArray> arrays;
  for (const TensorEntry& entry : header.tensors) {
    ByteSource source = source_of(file);
    source.name += fmt::format(": tensor \"{}\"", entry.name);
    arrays.push_back(
        array_or_problem([&] { return read_array(source, {.type = entry.type, .shape = entry.shape}); }));
    if (!arrays.back().problem.empty()) file.read_text(entry.end - entry.begin);  // one value at most
    arrays.back().name = entry.name;
  }
  if (!file.read_text(1).empty()) refuse(name, "is too long: more follows the last tensor's data");
  return arrays;
}

DataArrays read_safetensors_data(std::span<const std::filesystem::path> paths, const ReadOptions&) {
  InputFile file(only_path(paths, "safetensors"));
  DataArrays data{read_safetensors_arrays(file)};
  data.files = {{paths.front(), file.sha256()}};
  return data;
}

}  // namespace sweep
