// Reading a sweep file: from JSON and command line to a checked list of runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "core/base/shape.h"
#include "runmanager/config/run_config.h"

namespace sweep {

/// What the command line says besides key=value overrides, and what the machine has.
struct LoadOptions {
  std::optional<std::string> epochs;     // --epochs, as typed; replaces the file's and any axis of that key
  std::optional<std::string> seed;       // --seed, likewise
  std::optional<bool> deterministic;     // --deterministic or --no-deterministic, likewise
  std::optional<int> cuda_device_count;  // CUDA devices of this machine; nothing: ask it
};

/// Sizes of a data set that values of a sweep file are checked against.
struct DataSizes {
  Shape shape;              // of one sample: [channels, height, width]
  std::size_t classes = 0;  // 0: not known
  std::size_t train = 0;    // samples to train on, without the validation part
};

/// Reads `file` and every network file it names, applies `overrides` ("lr=0.1,0.01"), expands all
/// combinations and checks every value. Throws ConfigError whose text lists every mistake found, one per
/// line, as
///   FILE:LINE:COLUMN: key.path: what was found, what is allowed, did you mean "…"?
/// and DataError if a file cannot be read. Reads no data: sizes that known_data_sizes() gives are checked
/// here, those of other data sets by check_against_data().
Sweep load_sweep(const std::filesystem::path& file, std::span<const std::string> overrides = {},
                 const LoadOptions& options = {});

/// Checks what depends on the data before anything trains: batch sizes against the number of training
/// samples, layers against the shape of a sample, outputs against classes. `sizes_of` is called once per
/// different data set. Throws ConfigError in the format of load_sweep().
void check_against_data(const Sweep& sweep, const std::function<DataSizes(const DatasetSpec&)>& sizes_of);

/// Sizes that are known without reading the data: those of known_datasets() when no path is given.
std::optional<DataSizes> known_data_sizes(const DatasetSpec& spec);

}  // namespace sweep
