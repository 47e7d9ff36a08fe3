// Trains finished runs of a sweep again, alone, and compares the bits of what came out.
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
  std::size_t runs = 0;             // so many of the finished ones, spread over the sweep; 0: all
  int threads = 0;                  // CPU threads; 0: all. They must not matter
  /// Told of each run as soon as it is compared.
  std::function<void(const VerifiedRun&)> on_run = [](const VerifiedRun&) {};
};

struct VerifyReport {
  std::vector<VerifiedRun> runs;
  std::size_t finished = 0;  // runs that could have been trained again
  int exit_code = 0;         // 0 all the same, 1 not, 75, 130 or 143 if it was stopped
};

/// Runs whose kernels give other bits each time are not trained again but named with the reason; all of their
/// numbers may differ. Of the others weights, optimizer state, and the metrics of every epoch and of the
/// whole run are compared; times are not. Trains in a temporary directory and leaves `options.directory` as
/// it is. Throws DataError if that is no sweep's directory or has no finished run, and as run_sweep() does.
VerifyReport verify_sweep(const VerifyOptions& options, const SweepEnvironment& environment = {});

/// "lr=0.1: every bit is the same", or the name and the differences, one per line, or why there is nothing to
/// compare.
std::string verified_text(const VerifiedRun& run);

}  // namespace sweep
