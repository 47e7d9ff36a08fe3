// Data sets that are known by name, most of them byte for byte. The table serves the search by name, the
// checks for damaged or mixed-up files, and the checks of a sweep file that need sizes without reading any
// data. And where data sets are looked for by their names, and what is made or fetched for a user is kept.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sweep {

/// A file to be downloaded that holds the others.
struct KnownArchive {
  std::string_view name;  // of a .tar.gz; empty: the files are downloaded one by one, each as NAME.gz
  std::string_view sha256;
};

struct KnownDataset {
  std::string_view name;
  std::string_view format;                        // a name of data_formats()
  std::span<const std::string_view> class_names;  // one per class
  std::array<std::int64_t, 3> shape;              // of one sample: [channels, height, width]
  std::size_t train_samples;                      // of the whole training file, validation part included
  std::span<const std::string_view> files;        // their names, as its format has them
  std::span<const std::string_view> digests{};    // SHA-256 of each one's content; empty: they are not known
  std::string_view source;                        // what the URLs of its files or its archive begin with
  KnownArchive archive{};
  std::string_view package{};  // of Debian; empty: there is none
};

/// Every known data set, in the order in which messages list them.
std::span<const KnownDataset> known_datasets();

/// Their names.
std::span<const std::string> known_dataset_names();

/// Returns the data set called `name`, or nullptr.
const KnownDataset* find_known_dataset(std::string_view name);

/// How a user gets the files of `known`, for messages: an imperative, without a full stop.
std::string how_to_get(const KnownDataset& known);

/// $XDG_CACHE_HOME/sweep, or $HOME/.cache/sweep if that variable is no absolute path, as its specification
/// says; empty if neither is set. It need not exist. Thread-safe as long as nobody changes the environment.
std::filesystem::path user_cache_directory();

/// Where decoded images are kept, <user_cache_directory()>/decoded. Empty if there is no such directory.
std::filesystem::path decoded_folder();

/// The same. Empty, so that nothing is kept, also if $SWEEP_CACHE_SIZE is 0.
std::filesystem::path decoded_cache();

struct CleanedCache {
  std::size_t files = 0;
  std::uint64_t bytes = 0;
};

/// Removes all files of the cache, and no others. Throws IoError if one cannot be removed, or if the
/// folder cannot be read. Runs that use one go on: its memory stays until they end.
CleanedCache clean_cache(const std::filesystem::path& folder);

struct DatasetPlace {
  std::string shown;           // for messages: "$SWEEP_DATA/mnist" if that variable is not set
  std::filesystem::path path;  // empty: there is no such place
};

/// The places of the data set `name`, in the order in which they are looked into: $SWEEP_DATA/<name>,
/// /usr/share/datasets/<name>, /usr/local/share/datasets/<name>, and the user's own place.
std::vector<DatasetPlace> dataset_places(const std::string& name);

/// The user's own place of the data set `name`, <user_cache_directory()>/<name>, where downloads go. Empty if
/// there is no such directory.
std::filesystem::path user_dataset_place(const std::string& name);

/// Returns the first of dataset_places(name) that holds data in `format`, or in any if that is empty. Throws
/// DataError, with what is wrong with each of them, the files that were expected, and how to get them;
/// ConfigError if `name` is no plain name. Thread-safe.
std::filesystem::path find_dataset(const std::string& name, std::string_view format);

}  // namespace sweep
