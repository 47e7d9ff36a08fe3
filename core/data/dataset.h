// Data sets: how a sweep file describes them, and what they are once loaded.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/shape.h"
#include "core/data/readers/data_file.h"
#include "core/data/readers/named_arrays.h"
#include "core/data/readers/table_options.h"
#include "core/data/split_method.h"
#include "core/data/tensor_dataset.h"

namespace sweep {

/// Input normalisation, as torchvision.transforms.Normalize: x = (v − mean[c]) / std[c] for channel c, where
/// v is byte / 255 or the float itself. Samples of [features] have a channel per feature. Both are
/// [channels], or both are empty: x = v.
struct InputTransform {
  std::vector<float> mean;
  std::vector<float> std;  // > 0
  friend bool operator==(const InputTransform&, const InputTransform&) = default;
};

/// Where an InputTransform comes from that is not given.
enum class Normalization {
  kAuto,  // kTrain for a table, else kNone
  kNone,  // samples stay as they are
  kTrain  // mean and deviation of the training samples: per channel, or per feature of samples of [features]
};

/// A data set as the sweep file describes it.
struct DatasetSpec {
  std::string name{};  // "fashion-mnist", "mnist", "cifar10", or any name with a path
  /// A folder, a file, or a glob(7) pattern of files; empty: load_dataset() searches for it.
  std::filesystem::path path{};
  std::string format{};  // a name of data_formats(); empty: recognised by content
  /// Size of the validation set: a number of samples, or a fraction in [0, 1) of the training samples of the
  /// source. They are taken from the training samples, as `split` says, before `limit` applies.
  std::variant<std::size_t, double> validation = std::size_t{0};
  /// Size of the test set, likewise; 0 for a source that has one.
  std::variant<std::size_t, double> test = std::size_t{0};
  SplitMethod split = SplitMethod::kAuto;
  std::uint64_t split_seed = 0;  // of kRandom and kStratified
  /// Uses only the first `limit` samples of each of training, validation and test; 0: all. The validation
  /// samples are therefore the same ones for every size of the training set.
  std::size_t limit = 0;
  /// Image folders: [height, width] of the samples, each >= 1; none: all images have one size already.
  std::optional<std::array<std::int64_t, 2>> resize{};
  bool grayscale = false;              // image folders: one channel instead of three
  std::string label{};                 // the column or array of the classes; empty: found by its usual names
  std::vector<std::string> targets{};  // the columns, or the array, of numbers to be predicted
  // Tables; see ReadOptions.
  MissingValues missing = MissingValues::kError;
  Categories categories = Categories::kOneHot;
  DecimalMark decimal = DecimalMark::kAuto;
  TextEncoding encoding = TextEncoding::kUtf8;
  UnknownCategory unknown = UnknownCategory::kError;
  ChannelOrder channels = ChannelOrder::kAuto;  // of arrays
  std::vector<std::string> categorical{}, ignore{};
  Normalization normalization = Normalization::kAuto;
  InputTransform transform{};  // given; empty: as `normalization` says
  friend bool operator==(const DatasetSpec&, const DatasetSpec&) = default;
};

struct Dataset {
  std::string name;
  std::filesystem::path source{};  // where it was found, as load_dataset() opened it
  std::string format{};            // a name of data_formats()
  Shape shape;                     // of one sample
  /// [classes]; "0", "1", … if the classes have no names. Empty if the targets are numbers.
  std::vector<std::string> class_names;
  std::vector<std::string> target_names;   // of the numbers of a sample; empty if the targets are classes
  std::vector<std::string> feature_names;  // of the columns that a table's samples are made of; else empty
  std::vector<FeatureColumn> columns{};    // of a table: what became those features; else empty
  TextEncoding encoding = TextEncoding::kUtf8;        // of a table
  UnknownCategory unknown = UnknownCategory::kError;  // likewise
  std::vector<float> fill_values{};  // where missing values are allowed: what a channel gets for them
  Subset train;
  Subset validation;         // count 0 if there is none
  Subset test;               // count 0 if there is none
  InputTransform transform;  // given, or of the training samples
  std::vector<DataFile> files;
  std::vector<SkippedFile> skipped;  // files of the source that are not among the samples, and why
  std::vector<std::string> notes;    // for the user, one line each
};

/// Loads and validates a data set: magic numbers, sizes, label range, and the SHA-256 of well-known sets.
/// Missing values of a table become the mean of the training samples, which normalise all samples where
/// spec.normalization says so. If spec.path is empty, searches $SWEEP_DATA/<name>,
/// /usr/share/datasets/<name>, /usr/local/share/datasets/<name> and
/// ${XDG_CACHE_HOME:-~/.cache}/sweep/<name>, in that order. Throws DataError naming the file and what is
/// wrong with it, or every directory that was searched; ConfigError for an unknown format, an option that the
/// format does not have, a wrong transform, or a split that leaves no training set. Thread-safe.
Dataset load_dataset(const DatasetSpec& spec);

/// Makes a data set of arrays that a program has in memory, called "x" and "y", or "x_train", "y_train",
/// "x_test" and so on; see NamedArray. Samples are [count, features], [count, height, width] or [count,
/// channels, height, width]: bytes, of which a network gets byte / 255, or floats, which are taken as they
/// are. Targets are [count] classes from 0, or floats, [count] or [count, targets]. Samples are not copied.
/// `options` are those of a data set in files, as far as they do not concern files: name (default "memory"),
/// validation, test, split, split_seed, limit, missing, channels (default: first), normalization (default:
/// none) and transform. Throws DataError for arrays that do not fit together, classes out of range and
/// numbers that are not finite; ConfigError as load_dataset() does for the options.
Dataset make_dataset(DataArrays data, DatasetSpec options = {});

}  // namespace sweep
