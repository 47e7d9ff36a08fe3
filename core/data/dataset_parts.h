// Divides the samples of a source into training, validation and test parts.
#pragma once

#include <array>
#include <optional>

#include "core/data/dataset.h"

namespace sweep {

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
/// Throws ConfigError if nothing is left to train on, for a fraction outside [0, 1), if the source brings a
/// part itself that is to be split off, or for kStratified where targets are numbers.
void split_parts(SourceParts parts, const DatasetSpec& spec, Dataset& dataset);

}  // namespace sweep
