// Data sets of samples that a program has in memory, for training loops of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/shape.h"
#include "core/data/dataset.h"

namespace sweep {

/// Samples with their targets, row-major.
struct MemorySamples {
  /// [count, *shape]. Bytes stay bytes, of which a network gets byte / 255; floats are taken as they are.
  std::variant<std::vector<std::uint8_t>, std::vector<float>> samples;
  /// [count] classes from 0, or [count, targets] numbers.
  std::variant<std::vector<std::int32_t>, std::vector<float>> targets;
};

struct MemoryData {
  Shape shape;          // of one sample: [channels, height, width] or [features], each >= 1
  MemorySamples train;  // all samples, if there are no other parts
  std::optional<MemorySamples> validation = {}, test = {};  // with samples and targets of the same types
  std::vector<std::string> class_names = {};  // empty: "0", "1", … up to the largest class of `train`
  std::vector<std::string> target_names =
      {};  // of the numbers; empty: "target", or "target 0", "target 1", …
};

/// Makes a data set that DataLoader and Engine take, without copying `data`. `options` are those of a data
/// set in files, as far as they do not concern files: name (default "memory"), validation, test, split,
/// split_seed, limit, missing, normalization (default: none) and transform.
///
/// Throws DataError, which says the part and both numbers, unless there are a target for every sample and
/// samples, classes in range, finite numbers, and no NaN among the samples but with options.missing kMean;
/// ConfigError as load_dataset() does for the options.
Dataset make_dataset(MemoryData data, DatasetSpec options = {});

}  // namespace sweep
