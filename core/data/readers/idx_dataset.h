// Data sets of four IDX files with MNIST's file names: images and labels, to train on and to test with.
#pragma once

#include <filesystem>
#include <span>

#include "core/data/readers/raw_data.h"
#include "core/data/readers/read_options.h"

namespace sweep {

/// True for a folder with training images under MNIST's file name.
bool is_idx_dataset(const std::filesystem::path& path);

/// Reads train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and
/// t10k-labels-idx1-ubyte from one folder, each plain or with ".gz". Samples are bytes, [1, height, width];
/// classes are 0 to the largest training label. A folder without any t10k file has no test part. `files` are
/// in the order above, with the SHA-256 of their decompressed content. No options are used. Throws DataError.
RawData read_idx_dataset(std::span<const std::filesystem::path> paths, const ReadOptions& options);

}  // namespace sweep
