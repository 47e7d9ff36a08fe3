// The folder of decoded data sets in the user's cache, limited in size.
#pragma once

#include <cstdint>
#include <filesystem>

namespace sweep {

struct CacheFolder {
  std::filesystem::path path;    // need not exist; empty: nothing is kept
  std::uint64_t most_bytes = 0;  // of all files together; 0: nothing is kept
};

/// <user_cache_directory()>/decoded, and 20 GB or $SWEEP_CACHE_SIZE: a number of bytes, or of K, M, G or T
/// (powers of 1000). Throws ConfigError for anything else in that variable.
CacheFolder decoded_cache();

/// Marks the file as used now, as the last that make_room() removes. Does not throw.
void mark_used(const std::filesystem::path& file);

/// Removes the files that were used longest ago until `bytes` more fit, and what killed writers have left a
/// day ago or earlier. Does not throw.
void make_room(const CacheFolder& folder, std::uint64_t bytes);

struct CleanedCache {
  std::size_t files = 0;
  std::uint64_t bytes = 0;
};

/// Removes all files of the cache, and no others. Throws IoError if one cannot be removed. Runs that use one
/// go on: its memory stays until they end.
CleanedCache clean_cache(const CacheFolder& folder);

}  // namespace sweep
