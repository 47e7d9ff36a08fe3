// What a sweep asks of a Slurm cluster; the sweep file's "slurm".
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runmanager/config/run_config.h"
#include "runmanager/text/json_document.h"

namespace sweep {

/// What each task asks for. Empty, or 0: what the cluster gives by itself.
struct SlurmTasks {
  std::string partition, account, qos, reservation;
  std::string time;        // as sbatch takes it: "4:00:00"
  std::string memory;      // per node, so per task: "8G"
  std::string gres;        // "gpu:a100:1"; empty on CUDA: as many GPUs as a run needs
  std::string constraint;  // features of nodes: "a100|v100"
  std::string exclude;     // nodes: "n[1-3]"
  int cpus = 0;
  std::vector<std::string> options;  // further ones of sbatch: "--exclusive"
  std::vector<std::string> setup;    // lines of shell before the program: "module load cuda"
};

struct SlurmSpec {
  SlurmTasks cpu, cuda;           // by what their runs are trained on
  int tasks = 8;                  // of each of the two, at once
  int runs_per_task = 0;          // 0: as many as make four lists for each of `tasks`
  int max_restarts = 50;          // of a task that is preempted, reaches its time limit or loses its node
  int warning_seconds = 120;      // before the time limit: when the run writes its checkpoint and ends
  bool report = true;             // a job after the others, which writes the report
  std::filesystem::path program;  // the program as the nodes have it; empty: this one
};

/// Reads "slurm" of `root`; the defaults if it is not given. Reports every mistake.
SlurmSpec read_slurm(const JsonView& root, Problems& problems);

/// Returns "slurm" of the file of a sweep that was read. It is not in Sweep, because training does not depend
/// on it.
SlurmSpec slurm_spec(const Sweep& sweep);

/// The minutes of a time as sbatch takes it, rounded up: "30", "30:00", "4:00:00", "1-0", "1-0:30",
/// "1-0:30:00"; 0 for "UNLIMITED" and "INFINITE"; -1 for anything else.
long slurm_minutes(const std::string& time);

/// How many GPUs are in a --gres: 2 in "gpu:a100:2,tmp:10G", 1 in "gpu", 0 in "".
int slurm_gpus(const std::string& gres);

}  // namespace sweep
