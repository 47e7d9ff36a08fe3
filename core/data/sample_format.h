// The description of samples that a run records, and what data fits it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/dataset.h"

namespace sweep {

nlohmann::ordered_json to_json(const SampleFormat& format);
/// The inverse. Throws DataError, which `where` begins, if `json` is no such description.
SampleFormat sample_format_from_json(const nlohmann::ordered_json& json, std::string_view where);

/// Throws ConfigError unless `transform` is empty or has a finite mean and a deviation above 0 for each
/// channel of samples of `shape`.
void check_transform(const InputTransform& transform, const Shape& shape);

/// Throws DataError unless samples of `shape` are those of a network that was trained on `trained`. `name`
/// begins the message, as below.
void check_trained_shape(const Shape& shape, const Shape& trained, const std::string& name);

/// Throws DataError unless samples that are bytes, or floats, are those of such a network.
void check_trained_type(bool bytes, const SampleFormat& trained, const std::string& name);

/// Throws DataError if the network cannot be given the samples of `dataset`, or their targets.
void check_fits(const Dataset& dataset, const SampleFormat& trained, const std::string& name);

/// Makes the class numbers in `set`, places in `names`, those of the classes called so in `trained`. Throws
/// DataError for a class that is not there.
void renumber_classes(TensorDataset& set, const std::vector<std::string>& names,
                      const std::vector<std::string>& trained, const std::string& name);

}  // namespace sweep
