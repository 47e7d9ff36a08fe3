// What a sweep file expands to: a list of runs, each with every setting resolved.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/data/augment.h"
#include "core/data/dataset.h"
#include "core/engine/device.h"
#include "core/engine/engine.h"
#include "core/engine/parallel.h"
#include "core/network/layers.h"
#include "core/network/loss.h"
#include "core/network/optimizer.h"
#include "core/network/schedule.h"
#include "runmanager/config/metrics.h"
#include "runmanager/config/params.h"
#include "runmanager/config/run_settings.h"
#include "runmanager/config/search_spec.h"

namespace sweep {

/// A constant of type T that costs little to copy, however large T is: copies refer to the same object.
/// Assigning another value changes this copy only. Thread-safe as a std::shared_ptr.
template <typename T>
class SharedValue {
 public:
  SharedValue() : SharedValue(T()) {}
  SharedValue(T value) : value_(std::make_shared<const T>(std::move(value))) {}

  const T& operator*() const { return *value_; }
  const T* operator->() const { return value_.get(); }
  operator const T&() const { return *value_; }

 private:
  std::shared_ptr<const T> value_;
};

/// What is logged besides scalars; the sweep file's "log".
struct LogOptions {
  int images = 64;            // samples in the grid of the first batch; 0: none
  bool image_labels = false;  // with its target below each of them
  bool graph = true;
  bool histograms = true;
  bool hparams = true;
  bool text = true;
  bool layout = true;          // the custom-scalars layout
  bool predictions = true;     // PR curves, confusion matrix, misclassified samples at the end of a run
  int batches = 0;             // Loss/batch and Accuracy/batch every N batches; 0: never
  int validation_batches = 0;  // with them, the same over N batches of the validation set; 0: none
};

/// When a run ends before its last epoch; the sweep file's "stop".
struct StopSpec {
  Goal goal = asked_goal("Loss/validation", false);  // one of watchable_metrics()
  int patience = 3;                                  // epochs without an improvement after which the run ends
  double min_delta = 0;                              // what is more than this counts as an improvement
  bool restore_best = false;  // test and predictions are those of the best epoch's weights, not the last's
};

inline constexpr const char *kKeepLast = "last", *kKeepBest = "best";

inline constexpr const char* kRunCwd = "run";  // of "cwd": the run's own directory
/// Max of "reports" if a search compares runs on the way; the records keep that many.
inline constexpr int kMaxComparedReports = 10'000;

/// A person's own program as a run; the sweep file's "command" and the keys that go with it.
struct CommandSpec {
  std::vector<std::string> words;  // the program and its arguments, with substitutions; with a shell one text
  bool shell = false;
  std::filesystem::path cwd;                                 // absolute, or kRunCwd
  std::vector<std::string> inputs;                           // absolute paths or patterns of files
  std::vector<std::pair<std::string, std::string>> metrics;  // name and regular expression
  bool dashes = true;                                        // {flags}: --batch-size, not --batch_size
  double timeout = 0, silence = 0;                           // seconds; 0: none
  double grace = 10;                                         // seconds from SIGTERM to SIGKILL
  int gpus = 0;          // of its own, for each run; 0: it sees what this process does
  int runs_per_gpu = 1;  // runs that may share one
};

/// One run with every setting resolved.
struct RunConfig {
  std::size_t index = 0;  // position in the sweep, from 0
  std::string name;       // its directory: "lr=0.01,batch_size=1000,device=cpu"; unique in the sweep
  Params params;          // the swept keys only, in file order
  Params not_swept;  // keys of other runs that this one has no value of ("when"), with the values in force

  DatasetSpec dataset;
  SharedValue<NetworkSpec> network;
  OptimizerOptions optimizer;
  ScheduleOptions schedule;  // of lr
  LossOptions loss;
  double clip_norm = 0;  // EngineOptions::clip_norm
  int epochs = 1;
  bool evaluate_first = false;  // measure the validation set before training, as epoch 0
  std::uint64_t seed = 0;
  std::uint32_t repeat = 0;
  double lr = 0.01;
  std::size_t batch_size = 1;
  bool shuffle = true;
  int num_workers = 0;
  bool deterministic = true;               // EngineOptions::deterministic
  Placement placement = Placement::kAuto;  // EngineOptions::placement
  ParallelOptions parallel;                // EngineOptions::parallel
  int accumulate = 1;                      // EngineOptions::accumulation_steps
  std::vector<AugmentStep> augment;        // LoaderOptions::augment of the training samples
  std::string device;                      // as the file has it: "cuda", "cpu", "auto"
  std::optional<StopSpec> stop;            // none: every epoch is trained
  std::string checkpoint = kKeepLast;      // kKeepBest: also keeps the weights of the best epoch
  std::filesystem::path init;              // weights to start from; empty: drawn from the seed
  LogOptions log;

  /// A person's own program, which is run instead of training a network; null: none. `epochs` then are the
  /// reports that a whole run makes, and `dataset` to `init` do not count.
  std::shared_ptr<const CommandSpec> command;

  CompleteSettings
      resolved;  // the sweep file as this run sees it, with every default: what the above is read of
  /// The place of a setting, "network.layers.2", for errors that are found later: "FILE:LINE:COLUMN:
  /// key.path"; nothing for one that was not given. Empty in a run that is not of a file.
  std::function<std::optional<std::string>(const std::string& path)> where;
};

/// Whether the run leaves the weights of its best epoch.
inline bool keeps_best(const RunConfig& config) {
  return config.checkpoint == kKeepBest || (config.stop && config.stop->restore_best);
}

/// A combination that the file excludes.
struct ExcludedRun {
  Params params;
  std::string reason;
};

/// A whole sweep, checked. Immutable.
struct Sweep {
  std::string name;               // its directory below the log directory
  std::filesystem::path file;     // where it was read from
  std::vector<std::string> keys;  // the swept keys, in file order
  std::vector<RunConfig> runs;    // the last key varies fastest
  std::vector<ExcludedRun> excluded;
  nlohmann::ordered_json resolved;  // the file as expanded, with overrides
  std::optional<SearchSpec> search;
  /// Makes further runs of a search that draws points; null if all combinations are trained.
  std::shared_ptr<const TrialSource> trials;
};

}  // namespace sweep
