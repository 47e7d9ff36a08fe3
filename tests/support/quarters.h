// A data set that is learned within a second, a sweep over it, and the reproducible part of its results.
#pragma once

#include "runmanager/sweep/sweep_runner.h"
#include "tests/support/test.h"

namespace sweep {

/// Writes `directory`/data, images of 8x8 pixels whose class is the bright one of their four quarters, and
/// `directory`/quarters.json, a sweep of 4 runs of 6 epochs over them.
void write_quarters(const std::filesystem::path& directory);

/// Sweeps over quarters.json in a directory of their own.
class Quarters {
 public:
  Quarters();

  Sweep sweep(const std::vector<std::string>& overrides = {}) const;
  SweepOutcome run(const std::string& logdir, const std::vector<std::string>& overrides = {}) {
    return start(logdir, sweep(overrides));
  }
  SweepOutcome start(const std::string& logdir, const Sweep& sweep);
  /// Is asked to stop by SIGTERM when it has looked for a signal so often.
  SweepOutcome run_stopping(int looks, const std::string& logdir, const Sweep& sweep);

  test::TemporaryDirectory directory_;
  std::string file_ = "quarters.json";
  std::string told_;        // on the terminal
  std::ostringstream out_;  // tables
  SweepEnvironment environment_;
  RunnerOptions options_{.threads = 1};
};

/// The directory of a run.
std::filesystem::path run_directory(const SweepOutcome& sweep, std::size_t run = 0);

/// Everything in a sweep's results that does not depend on the clock: statuses, losses, metrics, weights.
std::string bits_of(const SweepOutcome& outcome);
/// The same for one run. `directory`: of the sweep.
std::string bits_of(const RunRecord& run, const std::filesystem::path& directory);

}  // namespace sweep
