// What a run takes: memory and disk, computed from shapes before anything is trained.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/data/dataset.h"
#include "core/engine/device.h"
#include "core/network/network.h"
#include "runmanager/config/data_check.h"
#include "runmanager/config/run_config.h"

namespace sweep {

/// What the costs of a run depend on in its data.
struct DataCost {
  DataSizes sizes;
  std::size_t test = 0;     // samples of the test set
  std::uint64_t bytes = 0;  // of all samples and targets, which all workers share
};

DataCost data_cost(const Dataset& dataset);
/// The same for data known only by its name.
DataCost data_cost(const DatasetSpec& spec, const DataSizes& sizes);

/// Peak memory of a run on the CPU, in bytes.
struct MemoryEstimate {
  std::uint64_t process = 0;  // the worker's program and libraries
  std::uint64_t engine = 0;   // parameters, gradients, optimizer state, activations: counted by the engine
  std::uint64_t loader = 0;   // the order of the samples, and batches that workers make ahead
  std::uint64_t results = 0;  // what is copied for checkpoints, histograms and predictions
  std::uint64_t data = 0;     // samples and targets; shared by all runs

  std::uint64_t own() const { return process + engine + loader + results; }
  std::uint64_t total() const { return own() + data; }
};

/// What a run leaves on the disk, in bytes.
struct DiskEstimate {
  std::uint64_t once = 0;       // checkpoints, pictures, graph, predictions
  std::uint64_t per_epoch = 0;  // events and records

  std::uint64_t of_epochs(std::size_t epochs) const { return once + epochs * per_epoch; }
};

/// Nothing for devices other than the CPU: their memory is not known before the run. `threads`: CPU threads
/// of the run, >= 1. Throws as make_engine().
std::optional<MemoryEstimate> estimate_memory(const RunConfig& run, const Network& network,
                                              const Device& device, const DataCost& data, int threads);

DiskEstimate estimate_disk(const RunConfig& run, const Network& network, const DataCost& data);

}  // namespace sweep
