#include "runmanager/slurm/shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/base/error.h"
#include "core/engine/stages.h"
#include "runmanager/sweep/trial_schedule.h"

namespace sweep {
namespace {

// GPUs that a task needs: those up to the last one that a run names, or counts.
int gpus_of(const ParallelOptions& parallel) {
  std::vector<Stage> stages;  // their devices
  for (const LayerPlacement& placement : parallel.model)
    stages.push_back({.device = parse_device(placement.device)});
  if (stages.empty()) stages.emplace_back();
  if (const auto& pipeline = parallel.pipeline; pipeline && parallel.model.empty()) {
    const int named = static_cast<int>(pipeline->first_layers.size());
    stages.emplace_back().device.index = named > 0 ? named : std::max(pipeline->stages, 1) - 1;
  }
  const auto [lowest, highest] = device_range(stages);
  return lowest + parallel.data * (highest - lowest + 1);
}

}  // namespace

std::string shape_name(const SlurmShape& shape) {
  const std::string name = shape.cuda ? "cuda" : "cpu";
  return shape.devices == 1 ? name : fmt::format("{}-{}", name, shape.devices);
}

SlurmShape shape_of(const RunConfig& run, const SlurmSpec& spec) {
  const bool cuda = run.device.starts_with("cuda") || (run.device == "auto" && !spec.cuda.gres.empty());
  // CPU cores are threads of one process, and asked for by "cpus".
  return {cuda, cuda ? gpus_of(run.parallel) : 1};
}

SlurmTasks tasks_of(const SlurmShape& shape, const SlurmSpec& spec) {
  SlurmTasks tasks = shape.cuda ? spec.cuda : spec.cpu;
  if (shape.cuda && tasks.gres.empty()) tasks.gres = fmt::format("gpu:{}", shape.devices);
  return tasks;
}

void check_for_slurm(const Sweep& sweep, const SlurmSpec& spec) {
  if (sweep.search && sweep.search->seconds)
    throw ConfigError(
        fmt::format("{}: \"seconds\" are the time of all trials, which one process has to watch; want a "
                    "search without it, or --launcher local",
                    sweep.search->origin));
  const bool varies = std::ranges::any_of(
      sweep.keys, [](const std::string& key) { return key == "device" || key.starts_with("parallel"); });
  if (waits_for_results(sweep) && varies)
    throw ConfigError(
        fmt::format("{}: its trials wait for the results of others, so tasks of one kind have to train them "
                    "all; want one device, and no axis of \"parallel\", or --launcher local",
                    sweep.search->origin));
  for (const RunConfig& run : sweep.runs) {
    if (!run.device.starts_with("cuda:")) continue;
    const int gpus = std::max(slurm_gpus(tasks_of(shape_of(run, spec), spec).gres), 1);
    const Device device = parse_device(run.device);
    if (device.index >= gpus)
      throw ConfigError(
          fmt::format("{}: device {}, but a task counts the {} that it was given from 0; want \"cuda\"{}",
                      run.name, run.device, gpus == 1 ? "GPU" : "GPUs",
                      gpus == 1 ? "" : fmt::format(" or cuda:0 to cuda:{}", gpus - 1)));
  }
}

}  // namespace sweep
