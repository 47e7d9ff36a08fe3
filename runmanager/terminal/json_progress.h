// Progress of a sweep for programs: one JSON object a line.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "runmanager/terminal/progress.h"

namespace sweep {

/// Writes a line per event, each an object with "event":
///   "begin"   a run begins: "run" (its name), "number" (from 1), "runs" (of the sweep), "epochs",
///             "trained_epochs" (by earlier starts), "batches" and "samples" (per epoch)
///   "epoch"   "run", and what run.json has of an epoch
///   "end"     "run", "number", "status", "metrics"; "error", "stopped", "run_seconds" where there are any
///   "kept"    "runs": so many that an earlier start has finished
///   "message" "text"
class JsonProgress final : public Progress {
 public:
  /// `write` gets whole lines with their ends. If `quiet`, only messages and failed runs are written.
  JsonProgress(std::function<void(std::string_view)> write, bool quiet, std::size_t runs);
  ~JsonProgress() override;

  TrainingObserver& run(std::size_t number) override;
  void end_run(std::size_t number, const RunRecord& run) override;
  void keep_runs(std::size_t count) override;
  void message(std::string_view line) override;

 private:
  class ActiveRun;
  void write_event(const nlohmann::ordered_json& event) const;

  std::function<void(std::string_view)> write_;
  bool quiet_;
  std::size_t runs_;
  std::map<std::size_t, std::unique_ptr<ActiveRun>> active_;  // by the run's number
};

/// The line of a message.
std::string json_message(std::string_view text);

}  // namespace sweep
