// Reads what a URL names, through libcurl.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace sweep {

struct DownloadOptions {
  std::uint64_t most_bytes = 0;  // larger content is refused
  /// Called several times a second with the bytes that are there, and how many there will be (0: not known).
  /// False ends the download.
  std::function<bool(std::uint64_t done, std::uint64_t total)> progress{};
};

/// Calls `take` with the content of `url`, piece by piece, in order. Only https:// and file:// are possible,
/// and a redirection leads to https:// only; certificates are checked. Returns false if options.progress
/// ended it. Throws what `take` throws; DataError of one line if the URL cannot be reached, names nothing,
/// has more content than options.most_bytes, stands still for a minute, or if libcurl is not installed. Not
/// thread-safe: the first call sets up libcurl.
bool download(const std::string& url, const DownloadOptions& options,
              const std::function<void(std::span<const std::uint8_t>)>& take);

}  // namespace sweep
