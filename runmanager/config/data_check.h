// Checks of a run's settings against the sizes of its data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>

#include "core/base/shape.h"
#include "runmanager/config/run_config.h"

namespace sweep {

/// Sizes of a data set that values of a sweep file are checked against.
struct DataSizes {
  Shape shape;                 // of one sample: [channels, height, width]
  std::size_t classes = 0;     // 0: not known
  std::size_t train = 0;       // samples to train on, without the validation part
  std::size_t numbers = 0;     // of a sample's targets, if they are numbers; else 0
  std::size_t validation = 0;  // samples of the validation set
  std::size_t test = 0;        // of the test set
  std::uint64_t bytes = 0;     // of all samples and targets, which all workers share
  friend bool operator==(const DataSizes&, const DataSizes&) = default;
};

DataSizes sizes_of(const Dataset& dataset);

/// Returns sizes that are known without reading the data: those of known_datasets() when no path is given.
std::optional<DataSizes> known_data_sizes(const DatasetSpec& spec);

/// Checks every run of the sweep before anything trains: a batch larger than the training set, layers that do
/// not fit a sample, a loss or a number of outputs that does not fit the targets, stages that the network
/// does not have, a normalization for another number of channels, and metrics that a run does not give on
/// this data. Each message starts with the location that the run's `where` has for the key, or with the sweep
/// file, if the key was not given. `sizes_of` is called once per run, even if runs share a data set; it may
/// throw, and says nothing of data that are not to be checked. Throws ConfigError in the format of
/// load_sweep().
void check_against_data(const Sweep& sweep,
                        const std::function<std::optional<DataSizes>(const DatasetSpec&)>& sizes_of);

/// The same of one run, of the sweep `file`.
void check_against_data(const RunConfig& run, const std::filesystem::path& file, const DataSizes& sizes);

}  // namespace sweep
