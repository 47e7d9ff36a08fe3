// Runs a whole sweep: every run in turn, with its logs, its results and its place in the terminal.
#pragma once

#include <filesystem>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/data/dataset.h"
#include "core/engine/engine.h"
#include "runmanager/config/run_config.h"
#include "runmanager/records/results.h"
#include "runmanager/terminal/terminal.h"

namespace sweep {

/// What the command line adds to a sweep file.
struct RunnerOptions {
  std::filesystem::path logdir = "runs";
  int jobs = 1;              // runs at once; 0: one per core, and one per GPU. More than 1 needs workers
  int threads = 0;           // CPU threads per run; 0: the cores, divided over the runs at once
  int retry = 0;             // how often a failed run is tried again; one that diverged is not
  bool retry_failed = true;  // runs that failed in an earlier start are tried again
  double timeout = 0;      // seconds that one run may take before it counts as failed; 0: any; needs workers
  double max_time = 0;     // seconds after which the sweep stops as if asked to; 0: never
  bool fresh = false;      // never continue: NAME-2, NAME-3, …
  bool replace = false;    // runs with other settings than those that are there are trained again
  bool fail_fast = false;  // the first failed run ends the sweep
  bool strict = false;     // a run without its device is a failure, not a skip
  bool quiet = false;      // no progress
  bool json = false;       // results.json on stdout instead of the table
  std::vector<std::string> command =
      {};  // the command line as typed, for the records and the hint that resumes
};

/// The world around a sweep. Tests replace parts of it.
struct SweepEnvironment {
  std::function<std::unique_ptr<Engine>(const Network&, const EngineOptions&)> make_engine =
      sweep::make_engine;
  std::function<Dataset(const DatasetSpec&)> load_dataset = sweep::load_dataset;
  std::function<std::optional<std::string>(const Device&, Precision)> unavailable_reason =
      sweep::unavailable_reason;
  std::function<Device(std::string_view)> parse_device = sweep::parse_device;
  std::function<double()> clock = {};  // seconds, never going back; empty: std::chrono::steady_clock
  std::function<int()>
      stop_requested;  // the signal that asks to stop, or 0; empty: SIGINT, SIGTERM and SIGUSR1
  /// The program that trains runs in processes of its own, see worker_main(): {"/proc/self/exe", "worker"}.
  /// Empty: they are trained in this process one after another, with make_engine, and a crash ends all.
  std::vector<std::string> worker_command = {};
  double stall_seconds = 60;                   // see SchedulerOptions
  Terminal terminal = Terminal::of_process();  // stderr
  std::ostream* out = nullptr;                 // the table; empty: std::cout
};

struct SweepOutcome {
  std::vector<RunRecord> runs;      // in the order of the sweep
  std::filesystem::path directory;  // <logdir>/<name>
  /// 0 all done or skipped, 1 a run failed, 75 SIGUSR1, 130 SIGINT, 143 SIGTERM.
  int exit_code = 0;
};

/// Trains every run of `sweep` that <logdir>/<name> does not already hold as completed with the same identity
/// (see RunIdentity); those that it holds in part, or with fewer epochs, go on after their last finished
/// epoch. A run that is there under another name, because the file has another axis now, is renamed. Throws
/// ConfigError, before anything is changed, if runs with other settings are in the way and
/// RunnerOptions::replace is not set. A run that fails is recorded, and the next one starts. The bits of
/// every result depend neither on where and when the sweep was interrupted nor on jobs, threads and workers.
///
/// Everything that can be checked is checked before the first run trains. Throws ConfigError or ShapeError (a
/// network that does not fit its data, a batch larger than the training set, weights that do not fit),
/// DataError (a data set or weights file), IoError (a directory that cannot be written or is held by another
/// sweep, a full disk).
SweepOutcome run_sweep(const Sweep& sweep, const RunnerOptions& options, SweepEnvironment environment = {});

}  // namespace sweep
