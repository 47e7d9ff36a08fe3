// Progress of a sweep for programs: one JSON object a line.
#pragma once

#include <functional>
#include <string>

#include "runmanager/terminal/progress.h"

namespace sweep {

/// Writes a line per event, each an object with "event":
///   "begin"   a run begins: "run" (its name), "number" (from 1), "runs" (of the sweep), "epochs",
///             "trained_epochs" (by earlier starts), "batches" and "samples" (per epoch)
///   "epoch"   "run", and what run.json has of an epoch
///   "end"     "run", "number", "status", "metrics"; "error", "stopped", "run_seconds" if there are any
///   "kept"    "runs": how many an earlier start has finished
///   "message" "text"
class JsonProgress final : public Progress {
 public:
  /// `write` gets whole lines with their ends. If `quiet`, only messages and failed runs are written. For the
  /// others see Progress.
  JsonProgress(std::function<void(std::string_view)> write, std::function<double()> clock, bool quiet,
               const std::string& sweep, std::size_t runs, double work);

  void message(std::string_view line) override;

 private:
  void show_kept(std::size_t count) override;
  void show_begin(const LiveRun& run) override;
  void show_epoch(const LiveRun& run, const EpochRecord& epoch) override;
  void show_end(std::size_t number, const RunRecord& run) override;
  void show_change(double) override {}
  void write_event(const nlohmann::ordered_json& event) const;

  std::function<void(std::string_view)> write_;
  bool quiet_;
};

/// The line of a message.
std::string json_message(std::string_view text);

}  // namespace sweep
