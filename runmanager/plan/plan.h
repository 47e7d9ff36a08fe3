// What a sweep would train, without training it.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/engine/device.h"
#include "runmanager/config/data_check.h"
#include "runmanager/config/run_config.h"

namespace sweep {

/// One run as it would be started.
struct PlannedRun {
  std::string name;
  Params params;
  std::string device;               // where it would train: "cpu", "cuda:1"
  std::optional<std::string> skip;  // why it would be skipped instead
  std::string fate = "new";         // "kept", "continued", "in the way": what an earlier start has left of it
  std::string note{};               // anything else the user should know
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

/// Returns the plan of `sweep`. `sizes_of` returns the sizes of a data set and is called once per run, also
/// where runs share a data set; `unavailable` returns why a device cannot be used with a precision, or
/// nothing. Both may throw.
SweepPlan make_plan(const Sweep& sweep, const std::function<DataSizes(const DatasetSpec&)>& sizes_of,
                    const std::function<std::optional<std::string>(const Device&, Precision)>& unavailable);

nlohmann::ordered_json plan_json(const SweepPlan& plan);

/// Returns a table with a line per run, then what is left out and why, then the totals. Ends with a newline.
std::string plan_text(const SweepPlan& plan);

}  // namespace sweep
