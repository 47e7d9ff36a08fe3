// What a sweep says when it ends.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "runmanager/config/run_config.h"
#include "runmanager/records/results.h"
#include "runmanager/sweep/run_queue.h"
#include "runmanager/sweep/sweep_recorder.h"
#include "runmanager/sweep/sweep_runner.h"

namespace sweep {

struct SweepSummary {
  const Sweep& sweep;
  std::filesystem::path directory;
  const std::vector<RunRecord>& runs;  // in the order of the sweep
  SweepCost cost = {};
  std::vector<std::string> means = {};   // names of the runs that show means of repeats
  std::optional<SearchEnd> search = {};  // if it was one
  int signal = 0;                        // that stopped it; 0: none
};

/// Writes the table of results, or JSON, to environment.out; and to the terminal where the time went, how to
/// look at the runs in TensorBoard, and how to go on.
void print_summary(const SweepSummary& summary, const RunnerOptions& options,
                   const SweepEnvironment& environment);

inline constexpr int kExitRunAgain = 75;  // EX_TEMPFAIL: stopped, and the same command goes on

/// See SweepOutcome::exit_code.
int exit_code_of(std::span<const RunRecord> runs, int signal);

}  // namespace sweep
