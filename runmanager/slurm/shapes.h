// Groups runs by their needs on a cluster: each group gets its own array of tasks.
#pragma once

#include <map>
#include <string>

#include "runmanager/config/run_config.h"
#include "runmanager/sweepfile/slurm/slurm_spec.h"

namespace sweep {

/// What one run needs.
struct SlurmShape {
  bool cuda = false;
  int devices = 1;  // of that kind, at once
  // NOLINTNEXTLINE(modernize-use-nullptr): the comparison with 0
  auto operator<=>(const SlurmShape&) const = default;
};

/// "cpu", "cuda", "cuda-4": a word for file names.
std::string shape_name(const SlurmShape& shape);

/// A run on "auto" counts as one on CUDA if the file asks for resources of its tasks on CUDA (gres), else as
/// one on the CPU.
SlurmShape shape_of(const RunConfig& run, const SlurmSpec& spec);

/// What tasks of that shape ask for, the default of --gres filled in.
SlurmTasks tasks_of(const SlurmShape& shape, const SlurmSpec& spec);

/// Throws ConfigError for a sweep that is not possible on a cluster: a search with a limit of seconds, one
/// whose trials wait for each other on several kinds of devices, or a device that a task does not have.
void check_for_slurm(const Sweep& sweep, const SlurmSpec& spec);

}  // namespace sweep
