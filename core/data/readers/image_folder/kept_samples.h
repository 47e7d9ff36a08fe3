// One file with the samples of a decoded data set, to be mapped into memory: see mapped_tensors.h.
//
// Its arrays are the samples and the labels of each part, and the description in JSON, which is known last.
// The metadata is the key and the SHA-256 of the description. Opening a file checks both and all sizes; it
// does not read the samples.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/base/file.h"
#include "core/data/readers/named_arrays.h"
#include "core/data/readers/safetensors/mapped_tensors.h"

namespace sweep {

/// Writes the rest of `data` after its samples, for `key`. Paths in `data` that are below `root` are those
/// of whoever reads the file. Throws IoError.
void finish_kept_samples(TensorWriter& file, const std::string& key, const std::filesystem::path& root,
                         const DataArrays& data);

/// Maps `file`, called `name`, which has the samples in `data`. These are then the file's memory, which stays
/// until the last of them is gone. Throws IoError, or DataError if it has no such samples.
void map_samples(FileDescriptor file, const std::string& name, DataArrays& data);

/// Maps what finish_kept_samples() wrote, with `root` before the paths. Returns nothing if there is no such
/// file, if it was written for another key or by another version, or if it is damaged. Does not throw.
std::optional<DataArrays> read_kept_samples(const std::filesystem::path& path, const std::string& key,
                                            const std::filesystem::path& root);

}  // namespace sweep
