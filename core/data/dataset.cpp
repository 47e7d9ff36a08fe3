#include "core/data/dataset.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <future>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/suggest.h"
#include "core/data/idx.h"
#include "core/data/known_datasets.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

struct Part {
  const char* images;  // name without ".gz"
  const char* labels;
};
constexpr Part kTrain = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte"};
constexpr Part kTest = {"t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};

std::string in_quotes(std::string_view text) { return '"' + std::string(text) + '"'; }

// Returns the file of that name in `directory`, plain or compressed, or an empty path.
fs::path find_file(const fs::path& directory, const std::string& name) {
  std::string dotted = name;  // as some copies on the web are called: train-images.idx3-ubyte
  dotted.replace(dotted.rfind("-idx"), 1, ".");
  for (const std::string& base : {name, dotted}) {
    for (const char* ending : {"", ".gz"}) {
      std::error_code error;
      fs::path path = directory / (base + ending);
      if (fs::exists(path, error)) return path;
    }
  }
  return {};
}

// Why `directory` does not hold a data set, or "" if it does.
std::string why_not_there(const fs::path& directory) {
  std::error_code error;
  if (!fs::exists(directory, error)) return "no such directory";
  if (!fs::is_directory(directory, error)) return "not a directory";
  if (find_file(directory, kTrain.images).empty())
    return std::string("no ") + kTrain.images + " or " + kTrain.images + ".gz in it";
  return "";
}

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
fs::path find_directory(const std::string& name) {
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos) {
    throw ConfigError(
        "the data set's name " + in_quotes(name) +
        " cannot be looked for: it must be a plain name such as \"fashion-mnist\", or come with a path");
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
    const std::string reason = path.empty() ? "SWEEP_DATA is not set" : why_not_there(path);
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

struct LoadedPart {
  std::shared_ptr<const ImageSet> set;
  DataFile images, labels;
};

LoadedPart load_part(const fs::path& directory, const Part& part) {
  const fs::path images_path = find_file(directory, part.images);
  const fs::path labels_path = find_file(directory, part.labels);
  for (const auto& [path, name] :
       {std::pair(images_path, part.images), std::pair(labels_path, part.labels)}) {
    if (path.empty()) throw DataError(directory.string() + ": has no " + name + " or " + name + ".gz");
  }
  // The small file first: mistakes show at once.
  const IdxFile labels = read_idx(labels_path, 1);
  IdxFile images = read_idx(images_path, 3);
  if (images.extents[0] != labels.extents[0]) {
    throw DataError(images_path.string() + ": holds " + std::to_string(images.extents[0]) + " images, but " +
                    labels_path.string() + " holds " + std::to_string(labels.extents[0]) + " labels");
  }
  auto set = std::make_shared<ImageSet>();
  set->shape = {1, images.extents[1], images.extents[2]};
  set->pixels = std::move(images.values);
  set->labels = std::vector<std::int32_t>(labels.values.begin(), labels.values.end());
  return {std::move(set), {images_path, images.sha256}, {labels_path, labels.sha256}};
}

void check_labels(const LoadedPart& part, std::size_t classes, const std::string& why) {
  const MaybeOwnedArray<std::int32_t>& labels = part.set->labels;
  const auto wrong = std::find_if(labels.begin(), labels.end(), [&](std::int32_t label) {
    return static_cast<std::size_t>(label) >= classes;
  });
  if (wrong == labels.end()) return;
  throw DataError(part.labels.path.string() + ": label " + std::to_string(*wrong) + " of sample " +
                  std::to_string(wrong - labels.begin()) + " (from 0) is out of range: " + why + " 0 to " +
                  std::to_string(classes - 1));
}

void check_digest(const DataFile& file, std::string_view expected, const std::string& name) {
  if (file.sha256 == expected) return;
  throw DataError(file.path.string() + ": well-formed, but not a file of " + in_quotes(name) +
                  ": the SHA-256 of its content is " + file.sha256 + ", expected " + std::string(expected) +
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

Dataset assemble(const DatasetSpec& spec, const fs::path& directory) {
  const bool has_test =
      !find_file(directory, kTest.images).empty() || !find_file(directory, kTest.labels).empty();
  // The test set is inflated beside the training set. Default launch policy: without
  // another thread it is done here.
  std::future<LoadedPart> test_part;
  if (has_test) test_part = std::async([&] { return load_part(directory, kTest); });
  const LoadedPart train = load_part(directory, kTrain);
  const LoadedPart test = has_test ? test_part.get() : LoadedPart{};

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
      throw DataError(test.images.path.string() + ": its images are " + to_string(test.set->shape) +
                      ", those for training " + to_string(train.set->shape));
    }
  }
  if (known != nullptr) {
    check_digest(train.images, known->train_images, spec.name);
    check_digest(train.labels, known->train_labels, spec.name);
    if (has_test) check_digest(test.images, known->test_images, spec.name);
    if (has_test) check_digest(test.labels, known->test_labels, spec.name);
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
  dataset.files = {train.images, train.labels};
  if (has_test) dataset.files.insert(dataset.files.end(), {test.images, test.labels});
  return dataset;
}

}  // namespace

Dataset load_dataset(const DatasetSpec& spec) {
  if (spec.format != "idx") {
    throw ConfigError("unknown data set format " + in_quotes(spec.format) + "; allowed: \"idx\"");
  }
  fs::path directory = spec.path;
  if (directory.empty()) {
    directory = find_directory(spec.name);
  } else if (const std::string reason = why_not_there(directory); !reason.empty()) {
    throw DataError(directory.string() + ": no data set there: " + reason);
  }
  try {
    Dataset dataset = assemble(spec, directory);
    check_transform(spec.transform, dataset.shape);
    return dataset;
  } catch (const DataError& error) {
    throw DataError(std::string(error.what()) + ". " + advice(spec.name) + ".");
  }
}

}  // namespace sweep
