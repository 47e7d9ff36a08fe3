// The state of a sweep while it trains, how that looks on a terminal, and its JSON, which `sweep status`
// reads.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runmanager/records/results.h"
#include "runmanager/terminal/terminal.h"

namespace sweep {

/// So many of the latest runs are kept: at least as many as any screen shows.
inline constexpr std::size_t kLatestKept = 32;

/// A run that is being trained.
struct LiveRun {
  std::size_t number = 1;  // in the sweep, from 1
  std::string name = {};
  Params params = {};       // of the sweep's axes; empty while unknown
  bool has_begun = false;   // how many epochs it has is known
  int epochs = 0;           // at its end
  int trained_epochs = 0;   // by earlier starts
  int finished_epochs = 0;  // these, and those since
  std::size_t batches = 0;  // per epoch
  std::size_t samples = 0;  // per epoch
  std::size_t batch = 0;    // trained in this epoch
  std::optional<double> loss =
      {};  // mean of this epoch so far, as seen while training; at its start, of the one before
  std::optional<double> accuracy = {};   // likewise, in [0, 1]
  std::optional<EpochRecord> last = {};  // the last epoch that this start has finished
  std::optional<double> batches_per_second = {},
                        samples_per_second = {};  // over a second of training or more
  std::string phase = {};  // what it has been doing for a while instead of training: "validation"; or ""
  double seconds = 0;      // since it began in this start

  /// The epoch that is trained, from 1; if the number of epochs is not known, the last finished one.
  int current_epoch() const;
  /// "/10" after the number of an epoch; "" if that is not known.
  std::string of_epochs() const;
  /// The part of the epoch in work, in [0, 1].
  double epoch_fraction() const;
  /// The part of the run, epochs of earlier starts included, in [0, 1].
  double fraction() const;
  /// Training samples times epochs, those of earlier starts included.
  double work() const { return static_cast<double>(samples) * epochs; }
  /// Until its last epoch has ended, at its mean speed; nullopt while too little of it is done to tell.
  std::optional<double> seconds_left() const;
};

/// A sweep that is being trained. Runs count from 1.
struct LiveSweep {
  std::string name;
  std::size_t runs = 0;  // all, finished ones included
  std::size_t kept = 0;  // that an earlier start has finished
  double work = 0;       // training samples times epochs, over all runs
  double ended_work =
      0;  // of those that have ended or paused; one that ended early counts whole, unless a search did that
  double earlier_work = 0;                      // of `work`: what was done before the start
  double seconds = 0;                           // since the start
  std::map<RunStatus, std::size_t> ended = {};  // how many ended in this start, by how they did
  std::size_t ends = 0;                         // how often one ended; a run can end more than once
  std::map<std::size_t, LiveRun> active = {};
  std::deque<RunRecord> latest = {};   // that have ended, the newest last; as summary_of() leaves them
  std::optional<RunRecord> best = {};  // of all that are completed so far, chosen by the sweep's goal

  /// How many have ended in this start with this status.
  std::size_t count(RunStatus status) const;
  std::size_t finished() const;
  /// The part of the work that is done, in [0, 1].
  double fraction() const;
  /// Until the end, at the mean speed since the start; nullopt while too little is done to tell.
  std::optional<double> seconds_left() const;
  /// Training samples per second, of all runs together; nullopt while none is known.
  std::optional<double> samples_per_second() const;
  /// Calls visit(name, params) for the runs at hand that are or were trained: active, latest and best.
  template <typename Visit>
  void for_each_known(const Visit& visit) const {
    for (const auto& [number, run] : active) visit(run.name, run.params);
    for (const RunRecord& run : latest) {
      if (run.status != RunStatus::kSkipped) visit(run.name, run.params);
    }
    if (best) visit(best->name, best->params);
  }
};

/// The record without its large parts: its configuration, its provenance, and all epochs except the last and
/// result_values().
RunRecord summary_of(const RunRecord& run);

/// All of `sweep`, and what follows from it: "fraction" of the work, "seconds_left", "samples_per_second".
nlohmann::ordered_json to_json(const LiveSweep& sweep);
/// The inverse. Throws DataError, naming `where`, if `json` is no such thing.
LiveSweep live_sweep_from_json(const nlohmann::ordered_json& json, std::string_view where);

/// The sweep as lines that change: its own with a bar, a table of the runs in training, and the best run so
/// far. No wider than the terminal, and at most a quarter of it high; the least informative columns are left
/// out first: parameters that are the same in all runs.
std::vector<std::string> live_table(const LiveSweep& sweep, const Terminal& terminal);

/// The line of a run that has ended. A completed run has its metrics (only the most important ones if the
/// terminal is narrow) and the values of its parameters for a name; any other has its reason in full. A
/// completed run that is LiveSweep::best is marked.
std::string ended_line(const LiveSweep& sweep, const RunRecord& run, const Terminal& terminal);

/// The line of an epoch in a log: "[3/16] lr=0.1  epoch 2/10  loss 0.3210  1.4 s  12.3k img/s".
std::string epoch_line(const LiveSweep& sweep, const LiveRun& run, const EpochRecord& epoch);

}  // namespace sweep
