// Runs a whole sweep: checks it, trains its runs, and shows and writes the results.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/data/dataset.h"
#include "core/engine/engine.h"
#include "core/engine/stages.h"
#include "runmanager/config/run_config.h"
#include "runmanager/records/results.h"
#include "runmanager/terminal/terminal.h"

namespace sweep {

/// Settings of the command line, which the sweep file does not have.
struct RunnerOptions {
  std::filesystem::path logdir = "runs";
  int jobs = 1;              // runs at once; 0: one per core, and one per GPU. More than 1 needs workers.
  int threads = 0;           // CPU threads per run; 0: the cores, divided over the runs at once
  int retry = 0;             // how often a failed run is tried again; one that diverged is not
  bool retry_failed = true;  // runs that failed in an earlier start are tried again
  double timeout = 0;        // seconds after which a run is ended as failed; 0: none. Needs workers.
  double max_time = 0;       // seconds after which the sweep stops as if asked to; 0: never
  bool fresh = false;        // always a new directory: NAME-2, NAME-3, …
  bool replace = false;      // retrain existing runs whose settings differ
  bool join = false;         // work on the sweep together with other processes that have this set
  bool leave = false;        // with join: end when no run is left to lock, also if others still train some
  bool fail_fast = false;    // the first failed run ends the sweep
  bool strict = false;       // a run without its device is a failure, not a skip
  bool quiet = false;        // no progress
  bool json = false;         // results.json on stdout instead of the table
  /// With join: which runs may be trained here, which no other process takes; empty: all.
  std::function<bool(const RunConfig&)> takes = {};
  std::vector<std::string> command = {};  // as typed, for the records and the hint how to resume
};

/// How many of `runs` runs are trained at once with these RunnerOptions::jobs; at least 1.
int runs_at_once(int jobs, std::size_t runs);

/// What a sweep uses from outside. Tests replace parts of it.
struct SweepEnvironment {
  std::function<std::unique_ptr<Engine>(const Network&, const EngineOptions&)> make_engine =
      sweep::make_engine;
  std::function<Dataset(const DatasetSpec&)> load_dataset = sweep::load_dataset;
  std::function<std::optional<std::string>(const Device&)> unavailable_reason = sweep::unavailable_reason;
  /// Why a run's devices cannot train together as its "parallel" asks for; see
  /// parallel_unavailable_reason().
  std::function<std::optional<std::string>(const Network&, const EngineOptions&)> parallel_missing_reason =
      parallel_unavailable_reason;
  std::function<Device(std::string_view)> parse_device = sweep::parse_device;
  std::function<double()> clock = {};  // seconds, monotonic; empty: std::chrono::steady_clock
  /// The signal that asks to stop, or 0; empty: the first of SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2.
  std::function<int()> stop_requested;
  /// The worker program and its first arguments, see worker_main(): {"/proc/self/exe", "worker"}. Empty: runs
  /// are trained in this process, one after another, with make_engine, and a crash ends the sweep.
  std::vector<std::string> worker_command = {};
  double stall_seconds = 60;                   // see SchedulerOptions
  Terminal terminal = Terminal::of_process();  // stderr
  std::ostream* out = nullptr;                 // for the table; nullptr: std::cout
};

struct SweepOutcome {
  std::vector<RunRecord> runs;      // in the order of the sweep
  std::filesystem::path directory;  // <logdir>/<name>
  /// 0 all done or skipped, 1 a run failed, 75 SIGUSR1, SIGUSR2 or max_time, 128 + any other signal.
  int exit_code = 0;
  bool failed_fast = false;  // a run that failed in this start has ended it, as RunnerOptions::fail_fast says
};

/// Trains every run of `sweep`, except those that <logdir>/<name> already has as completed with the same
/// identity (see RunIdentity). Unfinished runs, and those with fewer epochs, resume after their last finished
/// epoch. A run that is there under another name, because the file has a new axis, is renamed. Runs with
/// other settings are left alone: ConfigError, unless RunnerOptions::replace is set. A run that fails is
/// recorded, and the next one starts. The bits of the results do not depend on interruptions, jobs, threads
/// or workers.
///
/// Checks everything that can be checked before the first run trains. Throws ConfigError or ShapeError (a
/// network that does not fit its data, a batch larger than the training set, weights that do not fit),
/// DataError (a data set or weights file), IoError (a directory that cannot be written or is held by another
/// sweep, a full disk). Handles process signals unless environment.stop_requested is set; not to be called by
/// two threads at once then.
SweepOutcome run_sweep(const Sweep& sweep, const RunnerOptions& options, SweepEnvironment environment = {});

/// A sweep's directory, ready for others to train its runs in.
struct PlannedSweep {
  std::filesystem::path directory;
  std::vector<bool> done;  // one per run of the sweep: ended in an earlier start, and not to be trained again
};

/// Does what run_sweep() does before it trains the first run, devices left aside, and ends: the directory
/// then has its sweep.json, and what was in the way is moved. Throws as run_sweep().
PlannedSweep plan_sweep(const Sweep& sweep, const RunnerOptions& options, SweepEnvironment environment = {});

}  // namespace sweep
