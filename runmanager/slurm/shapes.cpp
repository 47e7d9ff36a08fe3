#include "runmanager/slurm/shapes.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/engine/device.h"

namespace sweep {
namespace {

// GPUs that a task needs: those up to the last one that a run names, or counts.
int gpus_of(const ParallelOptions& parallel) {
  int lowest = 0, highest = 0;
  if (parallel.pipeline && parallel.pipeline->stages > 0) highest = parallel.pipeline->stages - 1;
  if (parallel.pipeline && !parallel.pipeline->first_layers.empty())
    highest = static_cast<int>(parallel.pipeline->first_layers.size());
  for (const LayerPlacement& placement : parallel.model) {
    const int index = parse_device(placement.device).index;
    const bool is_first = &placement == parallel.model.data();
    lowest = is_first ? index : std::min(lowest, index);
    highest = is_first ? index : std::max(highest, index);
  }
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
  const bool waits = sweep.search && (has_rungs(sweep.search->method) || sweep.search->target ||
                                      sweep.search->seconds || chooses_points(*sweep.search));
  if (waits)
    throw ConfigError(
        fmt::format("{}: its trials wait for the results of others, so they cannot be trained by tasks that "
                    "know nothing of each other; want the method grid or random without target and seconds, "
                    "or --launcher local",
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
