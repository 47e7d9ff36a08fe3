// Where data sets are looked for by their names.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace sweep {

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
