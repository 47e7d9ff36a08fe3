// What a sweep would do, without doing it.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/engine/device.h"
#include "runmanager/config/run_config.h"
#include "runmanager/config/sweep_file.h"

namespace sweep {

/// One run as it would be started.
struct PlannedRun {
  std::string name;
  Params params;
  std::string device;               // where it would train: "cpu", "cuda:1"
  std::optional<std::string> skip;  // why it would be skipped instead
  std::size_t train_samples = 0;    // per epoch
  std::size_t steps_per_epoch = 0;  // optimizer steps
  std::size_t parameter_count = 0;  // floats
  std::uint64_t memory_bytes = 0;  // weights, gradients and optimizer state; activations and data come on top
  double training_flops = 0;       // of one epoch
};

struct SweepPlan {
  std::string name;
  std::vector<PlannedRun> runs;
  std::vector<ExcludedRun> excluded;
};

/// `sizes_of` gives the sizes of a run's data; `unavailable` why a device cannot be used with a
/// precision, or nothing.
SweepPlan make_plan(const Sweep& sweep, const std::function<DataSizes(const DatasetSpec&)>& sizes_of,
                    const std::function<std::optional<std::string>(const Device&, Precision)>& unavailable);

nlohmann::ordered_json plan_json(const SweepPlan& plan);

/// A table with a line per run, then what is left out and why, then the sums. Ends with a newline.
std::string plan_text(const SweepPlan& plan);

}  // namespace sweep
