// Gets the files of a known data set from the network, with the programs curl, or else python3, and tar.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/data/known_datasets.h"

namespace sweep {

struct FetchOptions {
  /// What takes the place of KnownDataset::source: files are at <mirror>/<data set>/<file>. An https:// or
  /// file:// URL; empty: the source.
  std::string mirror{};
  std::uint64_t most_bytes = std::uint64_t{1} << 30;  // of one download
  /// Called several times a second with the file that is downloaded and the bytes that are there. False ends
  /// it.
  std::function<bool(const std::string& file, std::uint64_t done)> progress{};
};

/// The URLs that fetch_dataset() downloads. Throws ConfigError for a mirror that is neither https:// nor
/// file://.
std::vector<std::string> dataset_urls(const KnownDataset& known, const std::string& mirror);

/// Downloads the files of `known`, checks their SHA-256, unpacks an archive, and puts them into `directory`.
/// All is done in a hidden folder beside `directory` first, and a file is moved to its name only after all of
/// them were checked: no file there is ever seen half-written. Other files in `directory` stay. Returns false
/// if options.progress ended it. Throws ConfigError as dataset_urls(), DataError for
/// what cannot be downloaded, content that is not the published one and missing programs, IoError for what
/// cannot be written; no file is left then.
bool fetch_dataset(const KnownDataset& known, const std::filesystem::path& directory,
                   const FetchOptions& options);

}  // namespace sweep
