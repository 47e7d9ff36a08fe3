// The results of a sweep: a record per run, and the tables of all runs in results.csv and results.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/file.h"
#include "runmanager/config/metrics.h"
#include "runmanager/config/run_config.h"

namespace sweep {

enum class RunStatus { kPending, kRunning, kCompleted, kFailed, kSkipped, kInterrupted, kPruned };

/// "pending", "running", "completed", "failed", "skipped", "interrupted" or "pruned".
std::string_view to_string(RunStatus status);
/// Throws DataError on any other text.
RunStatus parse_run_status(std::string_view text);

/// The results of one finished epoch, by the keys of metrics: see metrics(). A missing value was not
/// measured; NaN and infinity are values. Those of training are seen while training: "loss" is the mean over
/// the samples. "epoch_seconds" is the training part, without validation and logging; "run_seconds" the time
/// from the run's start to this epoch's end, everything included. Epoch 0 has no values of training.
struct EpochRecord {
  int epoch = 1;                                         // from 1; 0 is before training
  std::vector<std::pair<const Metric*, double>> values;  // in any order, each metric once

  EpochRecord() = default;
  explicit EpochRecord(int number) : epoch(number) {}
  /// Epoch `number`, with values by their keys.
  EpochRecord(int number, std::initializer_list<std::pair<std::string_view, std::optional<double>>> named);

  /// The value of the metric with this key; none if it was not measured.
  std::optional<double> operator[](std::string_view key) const;
  /// The same by the metric.
  std::optional<double> operator[](const Metric& metric) const;
  /// Sets the value of the metric, or removes it.
  void set(const Metric& metric, std::optional<double> value);
  /// The same by its key.
  void set(std::string_view key, std::optional<double> value) { set(metric_named(key), value); }
};

/// One run, as run.json has it.
struct RunRecord {
  std::string name;
  RunStatus status = RunStatus::kPending;
  Params params;
  Params not_swept = {};  // RunConfig::not_swept
  std::string device;     // "cpu", "cuda:0": where it trained or was to train; empty while unknown
  int jobs = 1;           // runs at once on the machine, this one included; more than 1 makes times longer
  std::optional<EpochRecord> untrained = {};  // epoch 0, the network before training, if it was measured
  std::vector<EpochRecord> epochs;            // from 1 on, without gaps
  std::string started, ended;                 // UTC, see utc_time(); of the first start and the last end
  std::optional<double> run_seconds;          // of the whole run; none before its end
  std::optional<double> setup_seconds;    // part of run_seconds before the first epoch: engine, data, graphs
  std::string placement;                  // of the samples, "device" or "host", where that differs
  std::string kernels = {};               // Engine::kernels(): others could train other bits
  double logging_seconds = 0;             // part of run_seconds spent on logs and files
  std::optional<std::string> error;       // why it failed, was skipped, interrupted or pruned
  std::string stop_reason = {};           // why a completed run ended before its last epoch; "" if it did not
  std::optional<int> best_epoch = {};     // whose weights are in best.safetensors
  std::map<std::string, double> metrics;  // of the whole run: "test_accuracy", "test_loss"
  nlohmann::ordered_json config;          // every setting, resolved
  /// Bytes of each events file at the end of the run, by name without directory. Empty before.
  std::map<std::string, std::uint64_t> event_files;
  nlohmann::ordered_json provenance = nlohmann::ordered_json::object();
};

/// Calls visit(epoch) for every epoch of the run that was measured, epoch 0 included.
template <typename Visit>
void for_each_epoch(const RunRecord& run, const Visit& visit) {
  if (run.untrained) visit(*run.untrained);
  for (const EpochRecord& epoch : run.epochs) visit(epoch);
}

/// The last of the epochs, with the latest values of metrics that it does not have. None for no epochs.
std::optional<EpochRecord> latest_values(std::span<const EpochRecord> epochs);

/// The swept keys of the runs, in the order they first appear.
std::vector<std::string> param_keys(const std::vector<RunRecord>& runs);

/// The step of a program that an epoch's record is of: its "step", if that is another number than its own.
std::int64_t step_of(const EpochRecord& epoch);
/// `values` as the record of a run's epoch `number`, of that step.
EpochRecord numbered(std::int64_t step, EpochRecord values, std::size_t number);
/// The first of the epochs, the third, and so on, numbered from 1.
std::vector<EpochRecord> every_second(const std::vector<EpochRecord>& epochs);

std::vector<EpochRecord> all_epochs(const RunRecord& run);
/// Adds an epoch after those of the run, or sets epoch 0.
void add_epoch(RunRecord& run, EpochRecord epoch);

/// How far a run's events and its training reach after its last finished epoch.
struct RunPosition {
  std::string events_file;         // the newest one, without directory
  std::uint64_t events_bytes = 0;  // of that file; later events belong to an unfinished epoch
  std::int64_t batches = 0;        // trained in all finished epochs
  /// The other events files of the run, all complete, without directory. Only if several processes share the
  /// sweep, see take_over_run(); none: those with earlier names.
  std::optional<std::vector<std::string>> earlier_files = {};
  bool operator==(const RunPosition&) const = default;
};

/// The progress of an unfinished run, which its checkpoint keeps in addition to the training state.
struct RunProgress {
  RunRecord record;  // with its finished epochs
  RunPosition position;
};

/// The table of results.csv: "run, status, epoch, loss, …" and then one column per swept key, called by
/// param_title(), of a population with what trained the epoch. A run without a finished epoch has one row
/// with empty cells. Metrics of the whole run, test_loss and test_accuracy, are at its last epoch. After
/// all runs come, for each combination with two completed repeats or more, a row with the status "mean" and
/// one with "std" per epoch that all of them have. After the columns that every sweep has come those of other
/// metrics that a run has: see Metric::column, and last those of people's own, by name. text/table_text.h
/// describes cells. If runs shared the machine, a last column "jobs" has the number of runs at once.
std::string results_csv(const std::vector<RunRecord>& runs, const std::vector<std::string>& keys);

/// The value of a metric in the row of `epoch`, one of the run's: those of the whole run are at its last one.
std::optional<double> value_at(const Metric& metric, const RunRecord& run, const EpochRecord& epoch);
/// The cell of results.csv that a metric's value has; "" for none.
std::string csv_cell(const Metric& metric, const std::optional<double>& value);

/// Whether any run was trained while others were, which makes its times longer.
bool any_shared(const std::vector<RunRecord>& runs);

/// The content of results.json: {"sweep", "runs": [{"name", "status", "params", "epochs", "run_seconds",
/// "error"}]}, "setup_seconds" where it was measured, and "jobs" for a run that shared the machine with
/// others; and, where there are repeats, "repeats": [{"name", "params", "runs", "mean": [epochs], "std":
/// [epochs]}]. JSON has no NaN or infinity: they are the strings "NaN", "Infinity" and "-Infinity", as in
/// TensorBoard's own JSON.
nlohmann::ordered_json results_json(const std::vector<RunRecord>& runs, std::string_view sweep);

/// Replaces `base`.csv and `base`.json. `sweep`: its name. `keys`: the first columns for params; others
/// follow in the order of the runs. Throws IoError.
void save_results(const std::filesystem::path& base, const std::vector<RunRecord>& runs,
                  std::string_view sweep, std::vector<std::string> keys, Survives survives);

}  // namespace sweep
