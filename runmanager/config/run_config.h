// What a sweep file expands to: a list of runs, each with every setting resolved; and the way from the
// complete settings of a run, which are JSON, to the values that engines and trainers take.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
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

/// A run's complete settings: a JSON object whose values are shared with the other runs of the sweep that
/// have the same ones, so that 100,000 runs fit into memory. Reading is thread-safe.
class CompleteSettings {
 public:
  using Json = nlohmann::ordered_json;

  /// Null.
  CompleteSettings() = default;
  CompleteSettings(const Json& object);

  /// The whole object.
  Json json() const;
  operator Json() const { return json(); }
  bool contains(std::string_view key) const { return find(key) != nullptr; }
  /// The value of a key that exists.
  const Json& at(std::string_view key) const;
  const Json& operator[](std::string_view key) const { return at(key); }
  std::string dump() const { return json().dump(); }
  /// The shared value; null if there is no such key.
  std::shared_ptr<const Json> find(std::string_view key) const;

  /// For writing: this copy has a value of its own from now on.
  Json& operator[](std::string_view key);
  /// Sets a value; null removes it. New keys follow the others.
  void set(std::string_view key, std::shared_ptr<const Json> value);

  friend bool operator==(const CompleteSettings& a, const CompleteSettings& b) {
    return a.json() == b.json();
  }

 private:
  std::shared_ptr<const Json>& place_of(std::string_view key);

  // By key; a null pointer keeps the place of a value that this run does not have.
  std::vector<std::pair<std::string, std::shared_ptr<const Json>>> values_;
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

/// Sets in a run what was read of a key.
using PutIntoRun = std::function<void(RunConfig& run)>;

/// Reads the complete value of a top-level key; null: the run does not have it. The result does nothing for a
/// key that no run has a member of.
PutIntoRun read_setting(std::string_view key, const nlohmann::ordered_json& value);

/// A boolean, number, string or list of numbers, two integers as a pair; nothing for anything else.
std::optional<ArgumentValue> argument_value(const nlohmann::ordered_json& json);

/// The value of a key as its type, with all arguments. Those of an optimizer, schedule or loss throw
/// ConfigError if they are not possible together.
DatasetSpec dataset_of(const nlohmann::ordered_json& json);
NetworkSpec network_of(const nlohmann::ordered_json& json);
ParallelOptions parallel_of(const nlohmann::ordered_json& json);
OptimizerOptions optimizer_of(const nlohmann::ordered_json& json);
LossOptions loss_of(const nlohmann::ordered_json& json);
ScheduleOptions schedule_of(const nlohmann::ordered_json& json);

/// What tables and the names of runs call the value of "parallel": "none", "data-2", "pipeline-2x4" (stages,
/// parts of a batch), "conv1-cpu+fc1-cpu.1". Without characters that names of runs escape.
std::string parallel_text(const ParallelOptions& options);

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
