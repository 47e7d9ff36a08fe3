#include "core/data/dataset_search.h"

#include <algorithm>
#include <cstdlib>

#include "core/base/cache_directory.h"
#include "core/base/error.h"
#include "core/base/suggest.h"
#include "core/data/known_datasets.h"
#include "core/data/readers/data_format.h"
#include "core/data/readers/input_file.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> known_names() {
  std::vector<std::string> names;
  for (const KnownDataset& known : known_datasets()) names.emplace_back(known.name);
  return names;
}

// Returns why `path` does not hold a data set in `format`, or in any format if that is empty; "" if it does.
std::string missing_reason(const fs::path& path, std::string_view format) {
  std::error_code error;
  if (!fs::exists(path, error)) return "no such directory";
  if (!fs::is_directory(path, error)) return "not a directory";
  if (format.empty()) {
    return recognise_format(path) != nullptr ? "" : "holds no data of a known format";
  }
  const DataFormat& row = require_format(format);
  return row.recognise(path) ? "" : "not " + std::string(row.description);
}

// The files of a known set, a line each.
std::string expected_files(const KnownDataset& known) {
  const bool has_digests = !known.files.front().sha256.empty();
  std::string text = " Its files, plain or compressed by gzip";
  text += has_digests ? ", with the SHA-256 of their content:" : ":";
  std::size_t width = 0;
  for (const KnownFile& file : known.files) width = std::max(width, file.name.size());
  for (const KnownFile& file : known.files) {
    text += "\n  " + std::string(file.name);
    if (has_digests) text += std::string(width - file.name.size() + 2, ' ') + std::string(file.sha256);
  }
  if (known.archive.name.empty()) return text;
  return text + "\nThey are in " + std::string(known.source) + std::string(known.archive.name) +
         ", whose SHA-256 is " + std::string(known.archive.sha256);
}

}  // namespace

fs::path user_dataset_place(const std::string& name) {
  const fs::path cache = user_cache_directory();
  return cache.empty() ? fs::path() : cache / name;
}

std::vector<DatasetPlace> dataset_places(const std::string& name) {
  std::vector<DatasetPlace> places;
  const auto add = [&](const fs::path& path) { places.push_back({path.string(), path}); };
  const char* data = std::getenv("SWEEP_DATA");
  if (data != nullptr && *data != '\0') {
    add(fs::path(data) / name);
  } else {
    places.push_back({"$SWEEP_DATA/" + name, {}});
  }
  for (const char* system : {"/usr/share/datasets", "/usr/local/share/datasets"})
    add(fs::path(system) / name);
  if (const fs::path own = user_dataset_place(name); !own.empty()) add(own);
  return places;
}

fs::path find_dataset(const std::string& name, std::string_view format) {
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos) {
    throw ConfigError("the data set's name " + quoted_name(name) +
                      " cannot be looked for: it must be a plain name such as " +
                      quoted_name(known_datasets().front().name) + ", or come with a path");
  }
  std::string message = "data set " + quoted_name(name) + " not found. Looked in:\n";
  for (const DatasetPlace& place : dataset_places(name)) {
    const std::string reason =
        place.path.empty() ? "SWEEP_DATA is not set" : missing_reason(place.path, format);
    if (reason.empty()) return place.path;
    message += "  " + place.shown + ": " + reason + "\n";
  }
  const KnownDataset* known = find_known_dataset(name);
  if (known != nullptr) {
    message += "To get it, " + how_to_get(*known) + ", or train with --yes; or";
  } else {
    const std::string nearest = nearest_name(name, known_names());
    if (!nearest.empty())
      message += "Did you mean " + quoted_name(nearest) + "? Otherwise";
    else
      message += "Either";
  }
  message += " put its files into one of these directories, or set SWEEP_DATA to the directory that holds " +
             quoted_name(name) + ", or give the data set a \"path\".";
  throw DataError(known != nullptr ? message + expected_files(*known) : message);
}

}  // namespace sweep
