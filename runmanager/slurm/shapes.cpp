#include "runmanager/slurm/shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "core/engine/device.h"

namespace sweep {
namespace {

int stages_of(const ParallelOptions& parallel) {
  if (parallel.pipeline && parallel.pipeline->stages > 0) return parallel.pipeline->stages;
  if (parallel.pipeline && !parallel.pipeline->first_layers.empty())
    return static_cast<int>(parallel.pipeline->first_layers.size()) + 1;
  std::set<std::string> devices;
  for (const LayerPlacement& placement : parallel.model) devices.insert(placement.device);
  return std::max(1, static_cast<int>(devices.size()));
}

}  // namespace

std::string shape_name(const SlurmShape& shape) {
  const std::string name = shape.cuda ? "cuda" : "cpu";
  return shape.devices == 1 ? name : fmt::format("{}-{}", name, shape.devices);
}

SlurmShape shape_of(const RunConfig& run, const SlurmSpec& spec) {
  const bool cuda = run.device.starts_with("cuda") || (run.device == "auto" && !spec.cuda.gres.empty());
  // CPU cores are threads of one process, and asked for by "cpus".
  return {cuda, cuda ? run.parallel.data * stages_of(run.parallel) : 1};
}

SlurmTasks tasks_of(const SlurmShape& shape, const SlurmSpec& spec) {
  SlurmTasks tasks = shape.cuda ? spec.cuda : spec.cpu;
  if (shape.cuda && tasks.gres.empty()) tasks.gres = fmt::format("gpu:{}", shape.devices);
  return tasks;
}

void check_for_slurm(const Sweep& sweep, const SlurmSpec& spec) {
  const bool waits = sweep.search && (has_rungs(sweep.search->method) || sweep.search->target ||
                                      sweep.search->seconds || sweep.search->method == SearchMethod::kTpe);
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
