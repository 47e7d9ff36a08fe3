// The header of a safetensors file: which tensors it has, and where.
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
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

}  // namespace sweep
