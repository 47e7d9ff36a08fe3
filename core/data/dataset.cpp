#include "core/data/dataset.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/suggest.h"
#include "core/base/text.h"
#include "core/data/data_from_arrays.h"
#include "core/data/known_datasets.h"
#include "core/data/readers/input_file.h"
#include "core/data/readers/readers.h"
#include "core/data/sample_format.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

// "t10k-images-idx3-ubyte of "mnist"" for a published digest, else "".
std::string known_content(std::string_view sha256) {
  for (const KnownDataset& known : known_datasets()) {
    const auto found = std::ranges::find(known.digests, sha256);
    if (found == known.digests.end()) continue;
    const auto place = static_cast<std::size_t>(found - known.digests.begin());
    return fmt::format("{} of \"{}\"", known.files[place], known.name);
  }
  return "";
}

void check_against_known(const Dataset& dataset, const DatasetSpec& spec, const KnownDataset& known,
                         const std::string& source) {
  for (std::size_t i = 0; i < std::min(dataset.files.size(), known.digests.size()); ++i) {
    const auto& [path, sha256] = dataset.files[i];
    if (sha256 == known.digests[i]) continue;
    if (const std::string other = known_content(sha256); !other.empty())
      refuse(path, "has the content of {}, expected {} of \"{}\"", other, known.files[i], known.name);
    refuse(
        path,
        "well-formed, but not a file of \"{}\": the SHA-256 of its content is {}, expected {}. A data set of "
        "your own needs another name",
        known.name, sha256, known.digests[i]);
  }
  // `sweep plan` counts on this number for a set that is found by its name.
  if (spec.path.empty() && dataset.train.set->size() != known.train_samples) {
    refuse(source, "holds {} samples to train on, but \"{}\" has {}", dataset.train.set->size(), known.name,
           known.train_samples);
  }
}

void check_options(const DatasetSpec& spec, const DataFormat& format, const std::string& source) {
  const auto refuse = [&](const char* option, const char* meaning) {
    throw ConfigError(fmt::format("{} {}, but {} is in format \"{}\"", option, meaning, source, format.name));
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
  if (spec.encoding == TextEncoding::kLatin1 && !format.is_table) refuse("encoding", of_a_table);
  if (spec.unknown != DatasetSpec{}.unknown && !format.is_table) refuse("unknown", of_a_table);
  if (!spec.categorical.empty() && !format.is_table) refuse("categorical", of_a_table);
  if (!spec.ignore.empty() && !format.is_table) refuse("ignore", of_a_table);
}

// `spec` as data_from_arrays() takes it for a source in `format`.
DatasetSpec resolved(DatasetSpec spec, const DataFormat& format) {
  if (spec.split == SplitMethod::kAuto && format.sorted_by_class) spec.split = SplitMethod::kStratified;
  if (!format.has_labels) spec.channels = ChannelOrder::kFirst;  // as readers of images give them
  if (!format.is_table) return spec;
  if (spec.normalization == Normalization::kAuto) spec.normalization = Normalization::kTrain;
  // The reader has chosen the columns.
  spec.label.clear();
  spec.targets.clear();
  return spec;
}

// `trained`: null, or that of load_dataset_for().
Dataset loaded(const DatasetSpec& spec, const SampleFormat* trained) {
  const KnownDataset* known = find_known_dataset(spec.name);
  const std::string_view wanted = spec.format.empty() && known != nullptr ? known->format : spec.format;
  if (!wanted.empty()) require_format(wanted);
  fs::path source = spec.path;
  std::error_code error;
  if (source.empty()) {
    source = find_dataset(spec.name, wanted);
  } else if (fs::status(source, error).type() == fs::file_type::not_found &&
             source.string().find_first_of("*?[") == std::string::npos) {
    const std::string path = source.string();
    const bool is_of_shell = path.find("~/") != std::string::npos || path.find('$') != std::string::npos;
    refuse(source, "no data set there: no such file or directory{}",
           is_of_shell ? "; ~ and $ are not replaced in a path"
                       : did_you_mean(nearest_name(path, known_dataset_names()), "; did"));
  }
  const std::string name = source.string();
  const std::vector<fs::path> paths = expand_source(name);
  const DataFormat& format = choose_format(wanted, paths);
  check_options(spec, format, name);
  ReadOptions options{spec, decoded_cache()};
  if (trained != nullptr && format.is_table) {
    options.columns = trained->columns;
    options.targets = trained->target_names;
  }
  const DatasetSpec described = resolved(spec, format);
  if (spec.split_seed != 0 && described.split != SplitMethod::kRandom &&
      described.split != SplitMethod::kStratified) {
    throw ConfigError(fmt::format(
        "split_seed is for \"split\": \"random\" or \"stratified\", but the last samples of {} are "
        "split off: set \"split\", or leave \"split_seed\" out",
        name));
  }
  Dataset dataset;
  try {
    DataArrays arrays = format.read(paths, options);
    if (known != nullptr) arrays.class_names.assign(known->class_names.begin(), known->class_names.end());
    dataset = data_from_arrays(std::move(arrays), described, name, trained);
    if (known != nullptr) check_against_known(dataset, spec, *known, name);
  } catch (const DataError& failure) {
    if (known == nullptr) throw;
    throw DataError(fmt::format("{}. To get the right files, {}.", failure.what(), how_to_get(*known)));
  }
  dataset.source = source;
  dataset.format = format.name;
  check_transform(dataset.transform, dataset.shape);
  return dataset;
}

}  // namespace

Dataset load_dataset(const DatasetSpec& spec) { return loaded(spec, nullptr); }
Dataset load_dataset_for(const SampleFormat& trained, const DatasetSpec& spec) {
  return loaded(spec, &trained);
}

Dataset make_dataset(DataArrays data, DatasetSpec options) {
  if (options.name.empty()) options.name = "memory";
  if (options.channels == ChannelOrder::kAuto) options.channels = ChannelOrder::kFirst;
  Dataset dataset = data_from_arrays(std::move(data), options, options.name);
  check_transform(dataset.transform, dataset.shape);
  dataset.format = "memory";
  return dataset;
}

}  // namespace sweep
