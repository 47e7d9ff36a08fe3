#include "core/data/readers/safetensors/mapped_tensors.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "core/base/file.h"

namespace sweep {
namespace {

constexpr std::size_t kAlignment = 64;  // a cache line, and the widest SIMD vector

std::string_view text_of(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

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
  const std::string_view all = text_of(file_->bytes());
  const std::uint64_t header_bytes = tensor_header_bytes(all, all.size(), name_);
  data_ = file_->bytes().subspan(kTensorLengthBytes + static_cast<std::size_t>(header_bytes));
  header_ = parse_tensor_header(all.substr(kTensorLengthBytes, static_cast<std::size_t>(header_bytes)),
                                data_.size(), name_);
}

const TensorEntry* MappedTensors::find(const std::string& name) const {
  const auto found = std::ranges::find(header_.tensors, name, &TensorEntry::name);
  return found == header_.tensors.end() ? nullptr : &*found;
}

std::span<const std::uint8_t> MappedTensors::bytes_of_tensor(const std::string& name, TensorType type) const {
  const TensorEntry* entry = find(name);
  if (entry == nullptr) refuse(name_, "has no array {}", name);
  const auto bytes = data_.subspan(static_cast<std::size_t>(entry->begin),
                                   static_cast<std::size_t>(entry->end - entry->begin));
  if (entry->type != type || reinterpret_cast<std::uintptr_t>(bytes.data()) % row_of(type).bytes != 0)
    refuse(name_, "array {} has values of another type", name);
  return bytes;
}

}  // namespace sweep
