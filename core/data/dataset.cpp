#include "core/data/dataset.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/data/cache/cache_folder.h"
#include "core/data/cache/cached_images.h"
#include "core/data/dataset_parts.h"
#include "core/data/dataset_search.h"
#include "core/data/known_datasets.h"
#include "core/data/memory_data.h"
#include "core/data/readers/data_format.h"
#include "core/data/readers/input_file.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

// "t10k-images-idx3-ubyte of "mnist"" for a published digest, else "".
std::string known_content(std::string_view sha256) {
  for (const KnownDataset& known : known_datasets()) {
    for (const KnownFile& file : known.files) {
      if (file.sha256 == sha256) return std::string(file.name) + " of " + quoted_name(known.name);
    }
  }
  return "";
}

void check_against_known(const RawData& raw, const DatasetSpec& spec, const KnownDataset& known,
                         const std::string& source) {
  const std::size_t classes = known.class_names.size();
  if (raw.class_names.size() > classes) {
    const auto wrong = std::ranges::find_if(
        raw.train.classes, [&](std::int32_t label) { return static_cast<std::size_t>(label) >= classes; });
    throw DataError(source + ": label " + std::to_string(raw.class_names.size() - 1) +
                    (wrong == raw.train.classes.end()
                         ? std::string()
                         : " of sample " + std::to_string(wrong - raw.train.classes.begin()) + " (from 0)") +
                    " is out of range: the classes of " + quoted_name(known.name) + " are 0 to " +
                    std::to_string(classes - 1));
  }
  const auto [file, expected] =
      std::mismatch(raw.files.begin(), raw.files.end(), known.files.begin(), known.files.end(),
                    [](const DataFile& read, const KnownFile& published) {
                      return published.sha256.empty() || read.sha256 == published.sha256;
                    });
  if (file != raw.files.end()) {
    if (const std::string other = known_content(file->sha256);
        !other.empty() && expected != known.files.end()) {
      throw DataError(file->path.string() + ": has the content of " + other + ", expected " +
                      std::string(expected->name) + " of " + quoted_name(known.name));
    }
    throw DataError(file->path.string() + ": well-formed, but not a file of " + quoted_name(known.name) +
                    ": the SHA-256 of its content is " + file->sha256 +
                    (expected == known.files.end() ? "" : ", expected " + std::string(expected->sha256)) +
                    ". A data set of your own needs another name");
  }
  // `sweep plan` counts on this number for a set that is found by its name.
  if (spec.path.empty() && raw.train.count != known.train_samples) {
    throw DataError(source + ": holds " + std::to_string(raw.train.count) + " samples to train on, but " +
                    quoted_name(known.name) + " has " + std::to_string(known.train_samples));
  }
}

void check_options(const DatasetSpec& spec, const DataFormat& format, const std::string& source) {
  const auto refuse = [&](const char* option, const char* meaning) {
    throw ConfigError(std::string(option) + " " + meaning + ", but " + source + " is in format " +
                      quoted_name(format.name));
  };
  if (spec.resize && !format.decodes_images) refuse("resize", "is for images that are decoded");
  if (spec.grayscale && !format.decodes_images) refuse("grayscale", "is for images that are decoded");
  if (!spec.label.empty() && !format.has_labels) refuse("label", "names a column or an array");
  if (!spec.targets.empty() && !format.has_labels) refuse("target", "names columns or an array");
  if (spec.channels != ChannelOrder::kAuto && (!format.has_labels || format.is_table))
    refuse("channels", "is for arrays of images");
  const char* of_a_table = "is for the columns of a table";
  if (spec.missing != DatasetSpec{}.missing && !format.has_labels)
    refuse("missing", "is for tables and arrays");
  if (spec.categories != DatasetSpec{}.categories && !format.is_table) refuse("categories", of_a_table);
  if (spec.decimal != DatasetSpec{}.decimal && !format.is_table) refuse("decimal", of_a_table);
  if (spec.encoding != DatasetSpec{}.encoding && !format.is_table) refuse("encoding", of_a_table);
  if (spec.unknown != DatasetSpec{}.unknown && !format.is_table) refuse("unknown", of_a_table);
  if (!spec.categorical.empty() && !format.is_table) refuse("categorical", of_a_table);
  if (!spec.ignore.empty() && !format.is_table) refuse("ignore", of_a_table);
}

void check_transform(const InputTransform& transform, const Shape& shape) {
  const auto channels = static_cast<std::size_t>(shape.front());
  if (transform.mean.size() != transform.std.size() ||
      (!transform.mean.empty() && transform.mean.size() != channels)) {
    throw ConfigError("normalize has " + std::to_string(transform.mean.size()) + " means and " +
                      std::to_string(transform.std.size()) + " standard deviations, but the images have " +
                      std::to_string(channels) + " channel" + (channels == 1 ? "" : "s") +
                      ": give one of each per " + (shape.size() == 1 ? "feature" : "channel"));
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

ReadOptions read_options(const DatasetSpec& spec) {
  ReadOptions options;
  if (spec.resize) {
    options.resize = ImageSize{static_cast<std::uint32_t>((*spec.resize)[0]),
                               static_cast<std::uint32_t>((*spec.resize)[1])};
  }
  options.grayscale = spec.grayscale;
  options.label = spec.label;
  options.targets = spec.targets;
  options.missing = spec.missing;
  options.categories = spec.categories;
  options.channels = spec.channels;
  options.decimal = spec.decimal;
  options.encoding = spec.encoding;
  options.categorical = spec.categorical;
  options.ignore = spec.ignore;
  return options;
}

Dataset assemble(RawData raw, const DatasetSpec& spec, const DataFormat& format) {
  Dataset dataset;
  dataset.name = spec.name;
  dataset.shape = raw.shape;
  dataset.class_names = raw.class_names;
  dataset.target_names = raw.value_names;
  dataset.feature_names = raw.feature_names;
  dataset.columns = raw.columns;
  dataset.encoding = spec.encoding;
  dataset.unknown = spec.unknown;
  dataset.files = std::move(raw.files);
  dataset.skipped = std::move(raw.skipped);
  dataset.notes = std::move(raw.notes);
  SplitMethod method = spec.split;
  if (method == SplitMethod::kAuto)
    method = format.sorted_by_class ? SplitMethod::kStratified : SplitMethod::kEnd;
  const bool given = spec.transform != InputTransform{};
  const bool measure = !given && (spec.normalization == Normalization::kTrain ||
                                  (spec.normalization == Normalization::kAuto && format.is_table));
  DatasetParts parts = split_samples(std::move(raw), spec, method, measure);
  dataset.transform = given ? spec.transform : std::move(parts.transform);
  dataset.fill_values = std::move(parts.fill_values);
  dataset.train = std::move(parts.train);
  dataset.validation = std::move(parts.validation);
  dataset.test = std::move(parts.test);
  return dataset;
}

}  // namespace

Dataset load_dataset(const DatasetSpec& spec) {
  const KnownDataset* known = find_known_dataset(spec.name);
  const std::string_view wanted = spec.format.empty() && known != nullptr ? known->format : spec.format;
  if (!wanted.empty()) require_format(data_formats(), wanted);
  fs::path source = spec.path;
  std::error_code error;
  if (source.empty()) {
    source = find_dataset(spec.name, wanted);
  } else if (fs::status(source, error).type() == fs::file_type::not_found &&
             source.string().find_first_of("*?[") == std::string::npos) {
    throw DataError(source.string() + ": no data set there: no such file or directory");
  }
  const std::string name = source.string();
  const std::vector<fs::path> paths = expand_source(name);
  const DataFormat& format = choose_format(data_formats(), wanted, paths);
  check_options(spec, format, name);
  RawData raw;
  try {
    raw = format.decodes_images ? read_cached_image_folder(paths, read_options(spec), decoded_cache())
                                : format.read(paths, read_options(spec));
    if (known != nullptr) check_against_known(raw, spec, *known, name);
  } catch (const DataError& failure) {
    if (known == nullptr) throw;
    throw DataError(std::string(failure.what()) + ". To get the right files, " + how_to_get(*known) + ".");
  }
  if (known != nullptr) raw.class_names.assign(known->class_names.begin(), known->class_names.end());
  Dataset dataset = assemble(std::move(raw), spec, format);
  dataset.source = source;
  dataset.format = format.name;
  check_transform(dataset.transform, dataset.shape);
  return dataset;
}

Dataset make_dataset(MemoryData data, DatasetSpec options) {
  if (options.name.empty()) options.name = "memory";
  RawData raw = raw_data_of(std::move(data), options.missing, options.name);
  check_transform(options.transform, raw.shape);
  DataFormat format{};
  format.name = "memory";
  Dataset dataset = assemble(std::move(raw), options, format);
  dataset.format = format.name;
  return dataset;
}

}  // namespace sweep
