// The IDX file format of MNIST and similar sets: a header with the extents of one array of bytes, then the
// bytes. Described at http://yann.lecun.com/exdb/mnist/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <istream>
#include <string>
#include <vector>

#include "core/base/shape.h"

namespace sweep {

struct IdxFile {
  Shape extents;                     // labels: [count], images: [count, height, width]; each >= 1
  std::vector<std::uint8_t> values;  // row-major
  std::string sha256;                // of the whole decompressed content, 64 hexadecimal digits
};

/// Reads an IDX file of unsigned bytes with `dimensions` extents (at most 255), plain or gzip-compressed.
/// Throws DataError, naming the file, what was found and what was expected. Never allocates more than a file
/// of that size can hold. Thread-safe.
IdxFile read_idx(const std::filesystem::path& path, std::size_t dimensions);

/// Reads from a seekable stream; `name` stands for the file in messages.
IdxFile read_idx(std::istream& in, const std::string& name, std::size_t dimensions);

}  // namespace sweep
