// NumPy's archive of arrays: a zip file with a .npy file for each, stored or deflated.
#pragma once

#include <filesystem>
#include <span>

#include "core/data/readers/named_arrays.h"
#include "core/data/readers/read_options.h"

namespace sweep {

/// True for a zip archive whose first member is a .npy file.
bool is_npz(const std::filesystem::path& path);

/// Reads the arrays of one archive, in its order, each called as its member without ".npy". Checks each
/// member's CRC. The SHA-256 is that of the archive. Throws DataError if it is damaged, encrypted or
/// compressed by another method, holds anything but arrays, or if a member is a decompression bomb: more than
/// 16 MiB that are more than 100 times its compressed size.
DataArrays read_npz(std::span<const std::filesystem::path> paths, const ReadOptions& options);

}  // namespace sweep
