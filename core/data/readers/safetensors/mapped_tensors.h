// Arrays in a file, or in memory that has a descriptor, which processes map: a safetensors file whose arrays
// begin at multiples of 64 bytes. Tensors called "padding 1", … fill the gaps, as the format allows none.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <type_traits>

#include "core/base/error.h"
#include "core/base/mapped_file.h"
#include "core/base/maybe_owned_array.h"
#include "core/data/readers/safetensors/safetensors_header.h"

namespace sweep {

/// The type of tensors that arrays of T are.
template <typename T>
inline constexpr TensorType kTensorTypeOf = std::is_same_v<T, std::uint8_t>    ? TensorType::kU8
                                            : std::is_same_v<T, std::int32_t>  ? TensorType::kI32
                                            : std::is_same_v<T, std::uint32_t> ? TensorType::kU32
                                                                               : TensorType::kF32;

/// Writes such a file piece by piece. The header comes last, into room that is left for it at the beginning.
/// Not thread-safe.
class TensorWriter {
 public:
  /// `fd` is an empty file, which messages call `path`. Throws IoError, as the other functions.
  TensorWriter(int fd, std::filesystem::path path);

  void begin(const std::string& name, TensorType type);
  void append(std::span<const std::byte> bytes);
  /// `shape` has as many values as were appended.
  void end(const Shape& shape);
  /// All three, for an array of one dimension.
  template <typename T>
  void add(const std::string& name, std::span<const T> values) {
    begin(name, kTensorTypeOf<T>);
    append(std::as_bytes(values));
    end({static_cast<std::int64_t>(values.size())});
  }

  /// Writes the header and sets the file's size. Call once, at last.
  void finish(const std::map<std::string, std::string>& metadata);

  const std::filesystem::path& path() const { return path_; }
  /// Bytes before the first array.
  static constexpr std::size_t kHeaderRoom = 4096;

 private:
  int fd_;
  std::filesystem::path path_;
  std::uint64_t written_ = 0;  // bytes of arrays
  TensorHeader header_;
};

/// A mapping of what TensorWriter has written. Checks the header and all sizes; reads no array. Thread-safe.
class MappedTensors {
 public:
  /// Throws IoError if the file cannot be mapped, DataError if it is not such a file; `name` stands for it.
  MappedTensors(FileDescriptor file, MapUse use, std::string name);

  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }
  const std::shared_ptr<const MappedFile>& file() const { return file_; }

  /// The tensor called `name`, or nullptr.
  const TensorEntry* find(const std::string& name) const;
  /// The values of tensor `name`, which keep the mapping alive. Throws DataError if there is none, or if it
  /// is of another type or not aligned.
  template <typename T>
  MaybeOwnedArray<T> array(const std::string& name) const {
    const std::span<const std::uint8_t> bytes = bytes_of_tensor(name, kTensorTypeOf<T>);
    return {std::span(reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)), file_};
  }

 private:
  std::span<const std::uint8_t> bytes_of_tensor(const std::string& name, TensorType type) const;

  std::string name_;
  std::shared_ptr<const MappedFile> file_;
  std::span<const std::uint8_t> data_;
  TensorHeader header_;
};

}  // namespace sweep
