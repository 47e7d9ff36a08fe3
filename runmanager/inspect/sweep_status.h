// The state of a sweep, or of all in a log directory, from their files.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runmanager/records/results.h"
#include "runmanager/terminal/live_sweep.h"
#include "runmanager/terminal/terminal.h"

namespace sweep {

enum class SweepState {
  kStarting,     // a process holds the directory and has not trained yet
  kRunning,      // a process trains
  kEnded,        // every run has ended
  kInterrupted,  // stopped in order before that
  kDied          // killed, or crashed
};

/// "starting", "running", "ended", "interrupted" or "died".
std::string_view to_string(SweepState state);

/// The sweep that `directory` means: its own, or the only one in training below it, a log directory. Throws
/// DataError if there is none, and ConfigError if there are several.
std::filesystem::path find_sweep(const std::filesystem::path& directory);

/// The progress that a running sweep has written last; nullopt if it has written none yet. Throws
/// DataError for a file that cannot be read.
std::optional<LiveSweep> read_progress(const std::filesystem::path& directory);

struct SweepStatus {
  std::filesystem::path directory = {};
  SweepState state = SweepState::kEnded;
  bool is_held = false;  // whether a process has the directory
  std::size_t runs = 0;
  std::map<RunStatus, std::size_t> statuses = {};  // how many runs have each; without those that none has
  std::size_t unfinished = 0;   // those that have not ended or are still to be chosen, except what the end
                                // of a search leaves
  std::string search_end = {};  // why its search begins no other trial; empty: it may
  std::optional<LiveSweep> progress = {};    // while it runs
  std::string best = {};                     // name of the best run by goals_of(); empty: none
  std::optional<double> best_accuracy = {};  // of it: in the validation, else in training; none for numbers
  std::string started = {}, ended = {};  // UTC: of its first run to start and its last to end; "" if none has
  std::string problem = {};              // in a list: why it cannot be read; else empty
};

/// Reads the records of all runs. Throws DataError.
SweepStatus sweep_status(const std::filesystem::path& directory);

/// The sweeps in `logdir` and in folders of it, two levels deep, sorted by path, without their states and
/// progress. Everything else there is ignored; a sweep that cannot be read is listed with the problem. Throws
/// DataError if `logdir` is not a directory.
std::vector<SweepStatus> list_sweeps(const std::filesystem::path& logdir);

enum class HowToGoOn { kSay, kSaidElsewhere };

/// A line: "runs/fashion: ended: 14 completed, 2 skipped"; then live_table() if the sweep runs, or how to go
/// on if it can. With line ends. kSaidElsewhere: does not say that it has stopped either, because tasks on
/// other machines may train it.
std::string status_text(const SweepStatus& status, const Terminal& terminal,
                        HowToGoOn how_to_go_on = HowToGoOn::kSay);
/// "14 completed, 2 skipped".
std::string statuses_text(const SweepStatus& status);
/// {"completed": 14, "skipped": 2}
nlohmann::ordered_json statuses_json(const SweepStatus& status);
/// {"sweep", "directory", "state", "runs", "statuses", "progress"}: the last is null, or as to_json() has it.
nlohmann::ordered_json to_json(const SweepStatus& status);

}  // namespace sweep
