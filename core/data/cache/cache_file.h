// One file with the samples of a decoded data set, to be mapped into memory.
//
// It holds a header of 128 bytes (magic, sizes, SHA-256 of the description), a description in JSON, and from
// the next page on the arrays, each aligned to 64 bytes: samples and classes of each part. The description
// has a CRC-32 of every 4 MiB of them. All of it is checked when the file is opened: that takes as long as
// reading the arrays once, on all cores, and samples that were damaged on the disk never reach a network.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/data/readers/raw_data.h"

namespace sweep {

/// Writes `data`, whose samples are bytes and whose targets are classes, for `key`. Returns the size that the
/// file has, or would have if that is more than `most_bytes`: then nothing is written. A reader sees the
/// whole file or none. Throws IoError.
std::uint64_t write_cache_file(const std::filesystem::path& path, const std::string& key, const RawData& data,
                               std::uint64_t most_bytes);

/// Maps what write_cache_file() wrote. The samples are the file's memory, which stays until the last of them
/// is gone. Returns nothing if there is no such file, if it was written for another key or by another
/// version, or if it is damaged. Does not throw.
std::optional<RawData> read_cache_file(const std::filesystem::path& path, const std::string& key);

}  // namespace sweep
