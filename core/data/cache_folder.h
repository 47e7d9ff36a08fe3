// Where the program keeps files of a user that it can make or fetch again, and the folder of decoded data
// sets in it: one file for each folder of images and its options.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>

namespace sweep {

/// $XDG_CACHE_HOME/sweep, or $HOME/.cache/sweep if that variable is no absolute path, as its specification
/// says; empty if neither is set. It need not exist. Thread-safe as long as nobody changes the environment.
std::filesystem::path user_cache_directory();

/// <user_cache_directory()>/decoded. Empty, so that nothing is kept, if there is no such directory or
/// $SWEEP_CACHE_SIZE is 0.
std::filesystem::path decoded_cache();

struct CleanedCache {
  std::size_t files = 0;
  std::uint64_t bytes = 0;
};

/// Removes all files of the cache, and no others. Throws IoError if one cannot be removed. Runs that use one
/// go on: its memory stays until they end.
CleanedCache clean_cache(const std::filesystem::path& folder);

}  // namespace sweep
