// Data sets, loaded.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/shape.h"
#include "core/data/readers/dataset_spec.h"
#include "core/data/readers/named_arrays.h"
#include "core/data/tensor_dataset.h"

namespace sweep {

/// What the samples of a data set look like: all that is needed to make others of the same kind for a network
/// that was trained on it.
struct SampleFormat {
  Shape shape;         // of one sample
  bool bytes = false;  // samples are uint8, of which a network gets byte / 255; else float32
  /// [classes]; "0", "1", … if the classes have no names. Empty if the targets are numbers.
  std::vector<std::string> class_names;
  std::vector<std::string> target_names;              // of the numbers of a sample; empty if they are classes
  std::vector<FeatureColumn> columns;                 // of a table: what became its features; else empty
  UnknownCategory unknown = UnknownCategory::kError;  // of the table
  std::vector<float> fill_values;  // per channel, for missing values; empty: none may be missing
  InputTransform transform;        // given, or of the training samples
  friend bool operator==(const SampleFormat&, const SampleFormat&) = default;
};

struct Dataset : SampleFormat {
  std::string name;
  std::filesystem::path source{};          // where it was found, as load_dataset() opened it
  std::string format{};                    // a name of data_formats()
  std::vector<std::string> feature_names;  // of the columns that a table's samples are made of; else empty
  Subset train;
  Subset validation;  // count 0 if there is none
  Subset test;        // count 0 if there is none
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

/// Loads a data set for a network that was trained on `trained`: columns, categories and classes are found by
/// their names, and missing values become the same as there. Throws also DataError that says what does not
/// fit the network.
Dataset load_dataset_for(const SampleFormat& trained, const DatasetSpec& spec);

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
