// Safetensors files: the header, which says which tensors a file has, and where; and arrays in a file, or in
// memory that has a descriptor, which processes map: such a file whose arrays begin at multiples of 64 bytes.
// Tensors called "padding 1", … fill the gaps, as the format allows none.
//
// Layout of a file: 8 bytes, the little-endian length of the header; the header, JSON: {"name": {"dtype",
// "shape", "data_offsets": [begin, end]}, …, "__metadata__": {string: string}}; the data. Offsets count from
// the start of the data, which the tensors cover without gaps or overlaps.
// https://huggingface.co/docs/safetensors
//
// Files may come from anywhere, so nothing in the header is trusted: its length, its depth, duplicate keys,
// products of extents and offsets are checked before memory is allocated for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/base/mapped_file.h"
#include "core/base/maybe_owned_array.h"
#include "core/base/shape.h"
#include "core/data/readers/array_values.h"

namespace sweep {

struct TensorEntry {
  std::string name;
  TensorType type = TensorType::kF32;
  Shape shape;
  std::uint64_t begin = 0, end = 0;  // bytes, from the start of the data; as many as the shape needs
};

struct TensorHeader {
  std::vector<TensorEntry> tensors;             // in the order of the header
  std::map<std::string, std::string> metadata;  // the file's "__metadata__"
};

inline constexpr std::size_t kTensorLengthBytes = 8;       // of the length, with which a file begins
inline constexpr char kTensorMetadata[] = "__metadata__";  // in place of a tensor's name
/// The limit of the reference implementation.
inline constexpr std::uint64_t kMaxTensorHeaderBytes = 100'000'000;

/// The length of the header, from `start`, the first bytes of a file that has, or may have at most,
/// `file_bytes` bytes. Throws DataError if it cannot be one; `name` stands for the file, as below.
std::uint64_t tensor_header_bytes(std::string_view start, std::uint64_t file_bytes, const std::string& name);

/// Parses the header. `data_bytes`: how many bytes follow it, if that is known; the tensors must then cover
/// them all. Throws DataError, naming the tensor, if it is malformed or a tensor has an unknown type.
/// Thread-safe.
TensorHeader parse_tensor_header(std::string_view header, std::optional<std::uint64_t> data_bytes,
                                 const std::string& name);

/// The inverse of parse_tensor_header(). Throws nlohmann::json::type_error for a name or metadata that is not
/// UTF-8.
std::string tensor_header_text(const TensorHeader& header);

/// A file in memory: its header, and a view of its data.
struct TensorContent {
  TensorHeader header;
  std::string_view data;
};

/// Takes `content` apart. Throws as the functions above.
TensorContent parse_tensor_file(std::string_view content, const std::string& name);

/// The type of tensors that arrays of T are.
template <typename T>
inline constexpr TensorType kTensorTypeOf = std::is_same_v<T, std::uint8_t>    ? TensorType::kU8
                                            : std::is_same_v<T, std::int32_t>  ? TensorType::kI32
                                            : std::is_same_v<T, std::uint32_t> ? TensorType::kU32
                                                                               : TensorType::kF32;

/// Writes aligned arrays piece by piece. The header comes last, into room that is left for it at the
/// beginning. Not thread-safe.
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

  const std::map<std::string, std::string>& metadata() const { return content_.header.metadata; }
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
  TensorContent content_;
};

}  // namespace sweep
