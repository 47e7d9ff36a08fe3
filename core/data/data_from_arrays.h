// Checks arrays, makes data sets of them and divides these; all readers go through here.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "core/data/dataset.h"
#include "core/data/readers/named_arrays.h"

namespace sweep {

/// Makes a data set of arrays with these names, in upper or lower case,
///   samples  "features", "x", "data", "images" or "inputs"
///   targets  "labels", "y", "targets" or "classes"; or the name in spec.label or spec.targets
/// with "_train", "_validation" ("_val", "_valid") or "_test" at the end or "train_", … in front for a part
/// of the data. Samples: [count, features], or [count, height, width] of one channel, or [count, channels,
/// height, width]; a last extent of 3 or 1 with larger ones before it means [count, height, width, channels]
/// and is moved; an ambiguous shape is refused unless spec.channels decides. Targets: [count] or
/// [count, 1] of integers are classes 0, 1, …; floats are values. Both are alike in all parts. With
/// spec.label, whole floats are also classes. Other arrays are noted, and integers that float32 rounds. The
/// rest of `spec` applies as split_parts() says. `name` is the source's name in messages. Throws DataError
/// for other arrays, ConfigError as split_parts() does. `trained`: null, or that of load_dataset_for().
Dataset data_from_arrays(DataArrays data, const DatasetSpec& spec, const std::string& name,
                         const SampleFormat* trained = nullptr);

/// The samples among `arrays`, which data_from_arrays() would find, or the only array whatever its name. NaN
/// is allowed with `missing` kMean. Throws DataError if there are several, or none, or if one sample is not
/// of the shape `wanted`, with its channels first or last.
SampleArray samples_from_arrays(std::vector<NamedArray> arrays, MissingValues missing, const Shape& wanted,
                                const std::string& name);

/// The parts that a source has by itself, by DataPart. That for training, which has samples, is all of them
/// if the source does not divide them.
using SourceParts = std::array<std::optional<TensorDataset>, 3>;

/// Splits spec.validation and spec.test samples off the training part, as spec.split says (kAuto: kEnd), and
/// applies spec.limit to every part. Sets the parts of `dataset`, its transform and its fill values; the
/// names of its classes, targets and columns are there already. No sample is copied: a split is an order of
/// rows. Missing values become the mean of their feature over the training samples. With spec.normalization
/// kTrain, and no spec.transform, these also give the transform: a feature that says 0 or 1 of a category
/// stays as it is, and a constant one becomes 0.
///
/// kEnd keeps the order of the files: training samples, then validation, then test. The other methods draw a
/// random order that depends on nothing but spec.split_seed and the number of samples; samples of the first
/// part are then also those that `limit` keeps.
///
/// Throws ConfigError if nothing is left to train on, for a fraction outside [0, 1) or of less than a sample,
/// if the source brings a part itself that is to be split off, or for kStratified where targets are numbers.
void split_parts(SourceParts parts, const DatasetSpec& spec, Dataset& dataset);

}  // namespace sweep
