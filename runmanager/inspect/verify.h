// Trains finished runs of a sweep again, one at a time, and compares the results bit by bit.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "runmanager/sweep/sweep_runner.h"

namespace sweep {

struct VerifiedRun {
  std::string name;
  std::vector<std::string> differences = {};  // one sentence each; empty: every bit is the same
  std::string not_compared = {};              // why it was not trained again; empty: it was
};

struct VerifyOptions {
  std::filesystem::path directory;  // of the sweep
  std::size_t runs = 0;             // number of finished runs to train, spread over the sweep; 0: all
  int threads = 0;                  // CPU threads; 0: all cores. Must not change a bit
  /// Called with each run as soon as it is compared.
  std::function<void(const VerifiedRun&)> on_run = [](const VerifiedRun&) {};
};

struct VerifyReport {
  std::vector<VerifiedRun> runs;
  std::size_t finished = 0;  // finished runs of the sweep, chosen or not
  // 0: all bits are the same, 1: not, 2: none was trained again; 75, 130 or 143 if it was stopped
  int exit_code = 0;
};

/// Compares weights, optimizer state, and the metrics of every epoch and of the whole run, but not times.
/// Runs whose kernels give other bits each time ("deterministic": false on CUDA), and those of another
/// program's training loop, are only reported, not trained again. Trains in a temporary directory and does
/// not touch `options.directory`. Throws DataError if that has no finished run, and whatever run_sweep()
/// throws.
VerifyReport verify_sweep(const VerifyOptions& options, const SweepEnvironment& environment = {});

/// "lr=0.1: every bit is the same", or the run's name with the differences, one per line, or with the reason
/// why it was not compared.
std::string verified_text(const VerifiedRun& run);

}  // namespace sweep
