// Fits data to a network that was trained on other data. `name` begins messages.
#pragma once

#include <string>
#include <vector>

#include "core/data/dataset.h"

namespace sweep {

/// Throws DataError unless samples of `shape` are those of a network that was trained on `trained`.
void check_trained_shape(const Shape& shape, const Shape& trained, const std::string& name);

/// Throws DataError if the network cannot be given the samples of `dataset`, or their targets.
void check_fits(const Dataset& dataset, const SampleFormat& trained, const std::string& name);

/// Makes the class numbers in `set`, places in `names`, those of the classes called so in `trained`. Throws
/// DataError for a class that is not there.
void renumber_classes(TensorDataset& set, const std::vector<std::string>& names,
                      const std::vector<std::string>& trained, const std::string& name);

}  // namespace sweep
