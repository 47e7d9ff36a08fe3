// The values of one array, as files of several formats store them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "core/base/error.h"
#include "core/base/shape.h"
#include "core/data/readers/input_file.h"
#include "core/data/readers/named_arrays.h"

namespace sweep {

/// An array is whole, but its values are of no use: of another type, none at all, or a single one.
struct UnusableArray : DataError {
  using DataError::DataError;
};

/// Bytes that come from a file, from a member of an archive, or from memory.
struct ByteSource {
  /// Fills `out`, or returns less at the end.
  std::function<std::size_t(std::span<std::uint8_t> out)> read;
  std::uint64_t max_bytes = 0;  // there are not more than these
  std::string name;             // starts every message
};

/// The content of `file`, which must outlive it.
ByteSource source_of(InputFile& file);

/// Types of values, by the names that safetensors gives them.
enum class TensorType { kBool, kU8, kI8, kU16, kI16, kF16, kBf16, kU32, kI32, kF32, kU64, kI64, kF64 };

struct TypeRow {
  const char* name;
  std::size_t bytes;  // of a value
  /// Converts `count` little-endian values, which may be unaligned, as PyTorch does.
  void (*to_floats)(const std::uint8_t* from, std::size_t count, float* to);
  void (*to_integers)(const std::uint8_t* from, std::size_t count, std::int64_t* to);  // null for floats
};

/// All types, in the enum's order.
std::span<const TypeRow> type_rows();
inline const TypeRow& row_of(TensorType type) { return type_rows()[static_cast<std::size_t>(type)]; }

struct ArrayLayout {
  TensorType type = TensorType::kU8;
  bool big_endian = false;
  bool fortran_order = false;
  Shape shape;
};

/// Reads an array, which gets no name; see ArrayValues for what its values become. Throws UnusableArray for a
/// shape that holds nothing or a single number, DataError if the source ends before the last value, for an
/// integer of more than 63 bits, and for a float64 too large for float32. Memory is taken only for what the
/// source can hold.
NamedArray read_array(const ByteSource& source, const ArrayLayout& layout);

/// The array that `read` returns, or one whose `problem` is the UnusableArray that it throws: in a file with
/// others, such as names of classes, it may not be needed.
NamedArray array_or_problem(const std::function<NamedArray()>& read);

/// Throws DataError if more follows the values of `shape`. The attempt to read on also has a compressed
/// source compare its checksum.
void require_end(const ByteSource& source, const Shape& shape);

}  // namespace sweep
