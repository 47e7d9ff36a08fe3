// The IDX file format of MNIST and its relatives: one array of bytes behind a header of its extents.
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
  Shape extents;                     // [count] of labels, [count, height, width] of images; each >= 1
  std::vector<std::uint8_t> values;  // row-major
  std::string sha256;                // of the whole decompressed content
};

/// Reads an IDX file of unsigned bytes with `dimensions` extents, plain or gzip-compressed. Throws DataError,
/// naming the file, what was found and what was expected. Memory is taken only for what the file can hold.
IdxFile read_idx(const std::filesystem::path& path, std::size_t dimensions);

/// The same from a seekable stream; `name` stands for the file in messages.
IdxFile read_idx(std::istream& in, const std::string& name, std::size_t dimensions);

}  // namespace sweep
