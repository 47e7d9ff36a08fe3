// Divides the samples that a reader returned into training, validation and test parts.
#pragma once

#include <vector>

#include "core/data/dataset.h"
#include "core/data/readers/raw_data.h"

namespace sweep {

struct DatasetParts {
  Samples train, validation, test;  // count 0 where there is none
  InputTransform transform;         // of the training samples, if it was asked for
  std::vector<float> fill_values;   // with spec.missing kMean: the means that stand for missing values
};

/// Splits spec.validation and spec.test samples off the training part of `raw`, as `method` says, and applies
/// spec.limit to every part. `method` must not be kAuto. The samples of `raw` are moved, or copied once where
/// their order changes; those in a mapped file stay where they are, and get an order. Missing values among
/// them become the mean of their feature over the training samples. With `measure`, these also give the
/// transform: a feature that says 0 or 1 of a category stays as it is, and a constant one becomes 0.
///
/// kEnd keeps the order of the files: training samples, then validation, then test; the parts share one set.
/// The other methods draw a random order that depends on nothing but spec.split_seed and the number of
/// samples; samples of the first part are then also those that `limit` keeps.
///
/// Throws ConfigError if nothing is left to train on, for a fraction outside [0, 1), if the source brings a
/// part itself that is to be split off, or for kStratified where targets are numbers.
DatasetParts split_samples(RawData raw, const DatasetSpec& spec, SplitMethod method, bool measure = false);

}  // namespace sweep
