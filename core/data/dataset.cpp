#include "core/data/dataset.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <future>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/suggest.h"
#include "core/data/data_format.h"
#include "core/data/known_datasets.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

std::string in_quotes(std::string_view text) { return '"' + std::string(text) + '"'; }

// What to do about files that are damaged or missing.
std::string advice(const std::string& name) {
  const KnownDataset* known = find_known_dataset(name);
  return known != nullptr ? "To get the right files, " + std::string(known->how_to_get)
                          : "Copy the file again";
}

std::vector<std::string> known_names() {
  std::vector<std::string> names;
  for (const KnownDataset& known : known_datasets()) names.emplace_back(known.name);
  return names;
}

// Returns the directory that holds the data set called `name`.
fs::path find_directory(const std::string& name, const DataFormat& format) {
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos) {
    throw ConfigError("the data set's name " + in_quotes(name) +
                      " cannot be looked for: it must be a plain name such as " +
                      in_quotes(known_datasets().front().name) + ", or come with a path");
  }
  std::vector<std::pair<std::string, fs::path>> places;  // how to show it, where it is (empty: nowhere)
  const auto environment = [](const char* variable) {
    const char* value = std::getenv(variable);
    return std::string(value != nullptr ? value : "");
  };
  if (const std::string data = environment("SWEEP_DATA"); !data.empty()) {
    places.emplace_back((fs::path(data) / name).string(), fs::path(data) / name);
  } else {
    places.emplace_back("$SWEEP_DATA/" + name, fs::path());
  }
  for (const char* system : {"/usr/share/datasets", "/usr/local/share/datasets"}) {
    places.emplace_back((fs::path(system) / name).string(), fs::path(system) / name);
  }
  if (const std::string cache = environment("XDG_CACHE_HOME"); !cache.empty()) {
    places.emplace_back((fs::path(cache) / "sweep" / name).string(), fs::path(cache) / "sweep" / name);
  } else if (const std::string home = environment("HOME"); !home.empty()) {
    const fs::path path = fs::path(home) / ".cache" / "sweep" / name;
    places.emplace_back(path.string(), path);
  }

  std::string message = "data set " + in_quotes(name) + " not found. Looked in:\n";
  for (const auto& [shown, path] : places) {
    const std::string reason = path.empty() ? "SWEEP_DATA is not set" : format.missing_reason(path);
    if (reason.empty()) return path;
    message += "  " + shown + ": " + reason + "\n";
  }
  if (const KnownDataset* known = find_known_dataset(name)) {
    message += "To get it, " + std::string(known->how_to_get) + "; or";
  } else {
    const std::string nearest = nearest_name(name, known_names());
    if (!nearest.empty())
      message += "Did you mean " + in_quotes(nearest) + "? Otherwise";
    else
      message += "Either";
  }
  throw DataError(
      message +
      " put its files into one of these directories, or set SWEEP_DATA to the directory that holds " +
      in_quotes(name) + ", or give the data set a \"path\".");
}

void check_labels(const SplitData& part, std::size_t classes, const std::string& why) {
  const MaybeOwnedArray<std::int32_t>& labels = part.set->labels;
  const auto wrong = std::find_if(labels.begin(), labels.end(), [&](std::int32_t label) {
    return static_cast<std::size_t>(label) >= classes;
  });
  if (wrong == labels.end()) return;
  throw DataError(part.files.back().path.string() + ": label " + std::to_string(*wrong) + " of sample " +
                  std::to_string(wrong - labels.begin()) + " (from 0) is out of range: " + why + " 0 to " +
                  std::to_string(classes - 1));
}

// `expected` has one digest per file, in the format's order.
void check_digests(const SplitData& part, std::span<const std::string_view> expected,
                   const std::string& name) {
  const auto [actual, digest] =
      std::mismatch(part.files.begin(), part.files.end(), expected.begin(), expected.end(),
                    [](const DataFile& file, std::string_view sha256) { return file.sha256 == sha256; });
  if (actual == part.files.end()) return;
  const DataFile& file = *actual;
  throw DataError(file.path.string() + ": well-formed, but not a file of " + in_quotes(name) +
                  ": the SHA-256 of its content is " + file.sha256 + ", expected " + std::string(*digest) +
                  ". A data set of your own needs another name");
}

void check_transform(const PixelTransform& transform, const Shape& shape) {
  const auto channels = static_cast<std::size_t>(shape.front());
  if (transform.mean.size() != transform.std.size() ||
      (!transform.mean.empty() && transform.mean.size() != channels)) {
    throw ConfigError("normalize has " + std::to_string(transform.mean.size()) + " means and " +
                      std::to_string(transform.std.size()) + " standard deviations, but the images have " +
                      std::to_string(channels) + " channel" + (channels == 1 ? "" : "s") +
                      ": give one of each per channel");
  }
  for (const float mean : transform.mean) {
    if (!std::isfinite(mean)) throw ConfigError("normalize: mean must be a finite number");
  }
  for (const float std : transform.std) {
    if (!std::isfinite(std) || std <= 0) {
      throw ConfigError("normalize: std must be greater than 0, found " + std::to_string(std));
    }
  }
}

std::size_t validation_count(const DatasetSpec& spec, std::size_t total) {
  std::size_t count = 0;
  if (const auto* fraction = std::get_if<double>(&spec.validation)) {
    if (!(*fraction >= 0 && *fraction < 1)) {
      throw ConfigError("validation as a fraction must be at least 0 and less than 1, found " +
                        std::to_string(*fraction));
    }
    count = static_cast<std::size_t>(std::floor(static_cast<double>(total) * *fraction));
  } else {
    count = std::get<std::size_t>(spec.validation);
  }
  if (count >= total) {
    throw ConfigError("validation takes " + std::to_string(count) + " samples, but the training set of " +
                      in_quotes(spec.name) + " has " + std::to_string(total) +
                      ": nothing is left to train on; at most " + std::to_string(total - 1) +
                      " are possible");
  }
  return count;
}

Dataset assemble(const DatasetSpec& spec, const DataFormat& format, const fs::path& directory) {
  const bool has_test = format.has_test(directory);
  // The test set is inflated beside the training set. Default launch policy: without another thread it is
  // done here.
  std::future<SplitData> test_part;
  if (has_test) test_part = std::async([&] { return format.read(directory, Split::kTest); });
  const SplitData train = format.read(directory, Split::kTrain);
  const SplitData test = has_test ? test_part.get() : SplitData{};

  const KnownDataset* known = find_known_dataset(spec.name);
  const auto largest = *std::max_element(train.set->labels.begin(), train.set->labels.end());
  const std::size_t classes =
      known != nullptr ? known->class_names.size() : static_cast<std::size_t>(largest) + 1;
  check_labels(train, classes, "the classes of " + in_quotes(spec.name) + " are");
  if (has_test) {
    check_labels(
        test, classes,
        known != nullptr ? "the classes of " + in_quotes(spec.name) + " are" : "the training labels are");
    if (test.set->shape != train.set->shape) {
      throw DataError(test.files.front().path.string() + ": its images are " + to_string(test.set->shape) +
                      ", those for training " + to_string(train.set->shape));
    }
  }
  if (known != nullptr) {
    check_digests(train, known->train_sha256, spec.name);
    check_digests(test, known->test_sha256, spec.name);
  }

  Dataset dataset;
  dataset.name = spec.name;
  dataset.shape = train.set->shape;
  for (std::size_t c = 0; c < classes; ++c) {
    dataset.class_names.push_back(known != nullptr ? std::string(known->class_names[c]) : std::to_string(c));
  }
  const auto limited = [&](std::size_t count) {
    return spec.limit == 0 ? count : std::min(count, spec.limit);
  };
  const std::size_t total = train.set->size();
  const std::size_t validation = validation_count(spec, total);
  dataset.train = {train.set, 0, limited(total - validation)};
  if (validation > 0) dataset.validation = {train.set, total - validation, limited(validation)};
  if (has_test) dataset.test = {test.set, 0, limited(test.set->size())};
  dataset.transform = spec.transform;
  dataset.files = train.files;
  dataset.files.insert(dataset.files.end(), test.files.begin(), test.files.end());
  return dataset;
}

}  // namespace

Dataset load_dataset(const DatasetSpec& spec) {
  const DataFormat* format = find_data_format(spec.format);
  if (format == nullptr) {
    std::string names;
    for (const DataFormat& known : data_formats())
      names += (names.empty() ? "" : ", ") + in_quotes(known.name);
    throw ConfigError("unknown data set format " + in_quotes(spec.format) + "; allowed: " + names);
  }
  fs::path directory = spec.path;
  if (directory.empty()) {
    directory = find_directory(spec.name, *format);
  } else if (const std::string reason = format->missing_reason(directory); !reason.empty()) {
    throw DataError(directory.string() + ": no data set there: " + reason);
  }
  try {
    Dataset dataset = assemble(spec, *format, directory);
    check_transform(spec.transform, dataset.shape);
    return dataset;
  } catch (const DataError& error) {
    throw DataError(std::string(error.what()) + ". " + advice(spec.name) + ".");
  }
}

}  // namespace sweep
