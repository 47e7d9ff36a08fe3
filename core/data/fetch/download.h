// Downloads files and unpacks archives with the programs curl, or else python3, and tar.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>

namespace sweep {

struct DownloadOptions {
  std::uint64_t most_bytes = 0;  // larger files are refused
  /// Called several times a second with the bytes that are there. False ends the download.
  std::function<bool(std::uint64_t done)> progress{};
};

/// Downloads `url` to the new file `path`. Only https:// and file:// are possible, and a redirection leads to
/// https:// only; certificates are checked. Returns false if options.progress ended it. Throws DataError of
/// one line if the URL cannot be reached, names nothing, is larger than options.most_bytes, makes no progress
/// for a minute, or if neither curl nor python3 is installed; IoError if the file cannot be written.
bool download(const std::string& url, const std::filesystem::path& path, const DownloadOptions& options);

/// Unpacks the files called `names` from the tar archive `archive`, plain or compressed, into `folder`. A
/// member is known by the last part of its name, so that no name of the archive becomes a path. The archive
/// must have been proven by its digest: tar is not made for damaged ones. Throws DataError, which begins with
/// `url`.
void unpack_tar(const std::filesystem::path& archive, std::span<const std::string> names,
                const std::filesystem::path& folder, const std::string& url);

}  // namespace sweep
