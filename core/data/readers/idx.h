// The IDX file format of MNIST and similar sets: a header with the extents of one array of bytes, then the
// bytes. Described at http://yann.lecun.com/exdb/mnist/.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "core/data/readers/input_file.h"
#include "core/data/readers/named_arrays.h"
#include "core/data/readers/read_options.h"

namespace sweep {

/// True for a folder with training images under MNIST's file name, and for a file of images.
bool is_idx(const std::filesystem::path& path);

/// Reads train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and
/// t10k-labels-idx1-ubyte from one folder, each plain or with ".gz"; the test files may be missing. Of a
/// file, reads the images alone. Throws DataError.
DataArrays read_idx_dataset(std::span<const std::filesystem::path> paths, const ReadOptions& options);

/// Reads a file of unsigned bytes with `dimensions` extents, which messages call by its name. Throws
/// DataError, saying what was found and what was expected. Memory is taken only for what the file can hold.
NamedArray read_idx(InputFile& file, std::size_t dimensions);

}  // namespace sweep
