// NumPy's array file, https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html.
#pragma once

#include <filesystem>
#include <span>

#include "core/data/readers/array_values.h"
#include "core/data/readers/named_arrays.h"
#include "core/data/readers/read_options.h"

namespace sweep {

/// True for a file of one array, or a folder with such files.
bool is_npy(const std::filesystem::path& path);

/// Reads a folder of .npy files, or the files given; each array has its file's name. See read_npy().
DataArrays read_npy_files(std::span<const std::filesystem::path> paths, const ReadOptions& options);

/// Reads an array of bool, uint8, other integers up to 64 bits, or float16, 32 and 64, of either byte order,
/// in C or Fortran order; see ArrayValues for what they become. Throws DataError for objects, structures,
/// text and complex numbers, a shape that holds nothing, and a length that does not fit the shape. Memory is
/// taken only for what the source can hold.
NamedArray read_npy(const ByteSource& source);

}  // namespace sweep
