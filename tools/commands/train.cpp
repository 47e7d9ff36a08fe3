#include "tools/commands/train.h"

#include <algorithm>
#include <chrono>
#include <iostream>

#include "runmanager/answers/comparison_report.h"
#include "runmanager/plan/prediction.h"
#include "runmanager/terminal/terminal.h"
#include "tools/worker_program.h"

namespace sweep {
namespace {

// The question that devices are swept for. Says nothing unless runs on two devices are completed.
void print_device_comparison(const SweepOutcome& outcome) {
  std::vector<SourceRun> runs;
  for (const RunRecord& record : outcome.runs) runs.push_back({outcome.directory.string(), record});
  const std::vector<std::string> keys = varying_keys(runs);
  if (std::find(keys.begin(), keys.end(), "device") == keys.end()) return;
  std::cout << "\n" << comparison_text(compare_runs(runs, "device", ""), stdout_unicode()) << std::flush;
}

}  // namespace

int train_sweep(const Sweep& sweep, const RunnerOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  const SweepOutcome outcome = run_sweep(sweep, options, environment_with_workers());
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  const std::string prediction = compare_with_prediction(
      outcome.directory, outcome.runs, runs_at_once(options.jobs, sweep.runs.size()), seconds.count());
  if (!prediction.empty() && !options.quiet && !options.json) std::cerr << prediction << std::endl;
  if (!options.json) print_device_comparison(outcome);
  return outcome.exit_code;
}

}  // namespace sweep
