#include "tools/commands/train.h"

#include <algorithm>
#include <chrono>
#include <iostream>

#include "core/parallel/replicated_engine.h"
#include "runmanager/answers/comparison.h"
#include "runmanager/plan/prediction.h"
#include "runmanager/terminal/terminal.h"

namespace sweep {
namespace {

// The question that devices are swept for. Says nothing unless runs on two devices are completed.
void print_device_comparison(const SweepOutcome& outcome) {
  const std::vector<SourceRun> runs = source_runs(outcome.directory, outcome.runs);
  const std::vector<std::string> keys = varying_keys(runs);
  if (std::find(keys.begin(), keys.end(), "device") == keys.end()) return;
  std::cout << "\n"
            << comparison_text(compare_runs(runs, "device", ""), TableFormat::kText, stdout_unicode(),
                               stdout_width())
            << std::flush;
}

// Several ranks train each run together, and this one is among them: a worker would be none.
SweepEnvironment environment_with(MpiSession& session) {
  SweepEnvironment environment;
  Communicator& world = session.world();
  const int sharers = session.ranks_on_these_cores();
  environment.make_engine = [&world, sharers](const Network& network, EngineOptions options) {
    if (options.parallel.data > 1) options.threads = std::max(1, options.threads / sharers);
    return make_engine_on(world, network, options);
  };
  environment.parallel_missing_reason = [size = world.size()](const Network& network,
                                                              const EngineOptions& options) {
    return group_unavailable_reason(network, options, size);
  };
  return environment;
}

}  // namespace

int train_sweep(const Sweep& sweep, const RunnerOptions& options, MpiSession* session) {
  const auto begin = std::chrono::steady_clock::now();
  const SweepOutcome outcome =
      run_sweep(sweep, options, session != nullptr ? environment_with(*session) : environment_with_workers());
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  const std::string prediction = compare_with_prediction(
      outcome.directory, outcome.runs, runs_at_once(options.jobs, sweep.runs.size()), seconds.count());
  if (!prediction.empty() && !options.quiet && !options.json) std::cerr << prediction << std::endl;
  if (!options.json) print_device_comparison(outcome);
  return outcome.exit_code;
}

}  // namespace sweep
