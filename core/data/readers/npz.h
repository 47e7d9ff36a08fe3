// NumPy's archive of arrays: a zip file with a .npy file for each, stored or deflated.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/readers/named_arrays.h"
#include "core/data/readers/raw_data.h"
#include "core/data/readers/read_options.h"

namespace sweep {

/// True for a zip archive whose first member is a .npy file.
bool is_npz(const std::filesystem::path& path);

/// Reads the arrays of an archive, in its order, each called as its member without ".npy". Checks each
/// member's CRC. Throws DataError if the archive is
/// damaged, encrypted or compressed by another method, holds anything but arrays, or if a member is a
/// decompression bomb: more than 16 MiB that are more than 100 times its compressed size.
std::vector<NamedArray> read_npz_arrays(const std::filesystem::path& path, const ReadOptions& options);

/// Reads one archive as a data set; see data_from_arrays(). The SHA-256 is that of the file.
RawData read_npz(std::span<const std::filesystem::path> paths, const ReadOptions& options);

}  // namespace sweep
