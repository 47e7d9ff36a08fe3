#include "runmanager/inspect/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <sstream>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/data/safetensors.h"
#include "core/engine/engine.h"
#include "core/json/json_text.h"
#include "runmanager/inspect/run_listing.h"
#include "runmanager/records/checkpoint.h"
#include "runmanager/records/recorded_config.h"
#include "runmanager/records/run_files.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::vector<RunRecord> finished_runs(const fs::path& directory) {
  std::vector<RunRecord> runs = read_sweep(directory).runs;
  std::erase_if(runs, [](const RunRecord& run) { return run.status != RunStatus::kCompleted; });
  if (runs.empty()) throw DataError(fmt::format("{}: has no finished run", directory.string()));
  return runs;
}

// Chooses `count` of the runs, evenly spread; 0: all.
std::vector<RunRecord> choose_runs(std::vector<RunRecord> runs, std::size_t count) {
  if (count == 0 || count >= runs.size()) return runs;
  std::vector<RunRecord> chosen;
  for (std::size_t i = 0; i < count; ++i) chosen.push_back(runs[i * runs.size() / count]);
  return chosen;
}

// The configuration of the run on the device that it was trained on, and without logs, which change no
// result. Relative paths are resolved from the directory that the sweep was started in.
RunConfig config_without_logs(const RunRecord& record) {
  RunConfig config = recorded_config(record);
  resolve_paths(config, record);
  config.device = record.device;
  config.where = [](const std::string&) { return std::nullopt; };  // A default batch may be the whole set.
  // Workers are sent only `resolved`, so it has to say the same.
  for (Json& option : config.resolved["log"]) option = option.is_boolean() ? Json(false) : Json(0);
  read_setting("log", config.resolved["log"])(config);
  config.resolved["device"] = record.device;
  config.resolved["dataset"]["path"] = config.dataset.path.string();
  if (config.dataset.path.empty()) config.resolved["dataset"].erase("path");
  if (!config.init.empty()) config.resolved["init"] = config.init.string();
  return config;
}

// Unlike ==, tells NaN equal to itself and 0 different from -0.
bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

// Adds a sentence to `differences` unless both values have the same bits or are missing.
void compare_number(const std::string& label, std::optional<double> before, std::optional<double> after,
                    std::vector<std::string>& differences) {
  if (before.has_value() == after.has_value() && (!before || same_bits(*before, *after))) return;
  const auto text = [](std::optional<double> value) {
    return value ? fmt::format("{:.17g}", *value) : std::string("missing");
  };
  differences.push_back(fmt::format("{} was {} and is {} now", label, text(before), text(after)));
}

void compare_epochs(const EpochRecord& a, const EpochRecord& b, std::vector<std::string>& differences) {
  const std::string epoch = fmt::format("epoch {}: ", a.epoch);
  for (const Metric* metric : epoch_metrics()) {
    if (is_quality(*metric))
      compare_number(epoch + std::string(metric->key), a[*metric], b[*metric], differences);
  }
}

// Compares the records of a run from both trainings. "dataset", "init_sha256" and "numerics" say whether the
// second one had the same input and computes the same bits at all.
void compare_records(const RunRecord& before, const RunRecord& after, std::vector<std::string>& differences) {
  for (const char* key : {"dataset", "init_sha256", "numerics"}) {
    Json old = before.provenance.value(key, Json()), now = after.provenance.value(key, Json());
    if (std::string_view(key) == "dataset") {
      for (Json* files : {&old, &now}) {
        if (!files->is_object() || !files->contains("files")) continue;
        for (Json& file : (*files)["files"]) file.erase("path");  // The same content may lie elsewhere.
      }
    }
    if (old != now)
      differences.push_back(fmt::format("trained from another {}: it was {} and is {} now",
                                        std::string_view(key) == "dataset" ? "data set" : key, old.dump(),
                                        now.dump()));
  }
  // Earlier versions had them in checkpoints only.
  if (!before.kernels.empty() && before.kernels != after.kernels)
    differences.push_back(fmt::format("trained with other kernels: they were {} and are {} now",
                                      before.kernels,
                                      after.kernels.empty() ? "not recorded" : after.kernels));
  // A run that was not begun with it has none.
  if (after.status == RunStatus::kCompleted && before.best_epoch && before.best_epoch != after.best_epoch)
    differences.emplace_back("the best epoch is another one now");
  if (after.status != RunStatus::kCompleted) {
    differences.push_back(fmt::format("{} now: {}", to_string(after.status), after.error.value_or("")));
    return;
  }
  if (before.epochs.size() != after.epochs.size())
    differences.push_back(
        fmt::format("had {} epochs and has {} now", before.epochs.size(), after.epochs.size()));
  if (before.untrained && after.untrained) compare_epochs(*before.untrained, *after.untrained, differences);
  for (std::size_t i = 0; i < std::min(before.epochs.size(), after.epochs.size()); ++i)
    compare_epochs(before.epochs[i], after.epochs[i], differences);
  for (const auto& [name, value] : before.metrics) {
    const auto now = after.metrics.find(name);
    compare_number(name, value, now == after.metrics.end() ? std::nullopt : std::optional(now->second),
                   differences);
  }
}

// Compares the tensors of two checkpoints: weights and optimizer state. `what` begins each sentence.
void compare_weights(const fs::path& before, const fs::path& after, const std::string& what,
                     std::vector<std::string>& differences) {
  const auto add = [&](const std::string& difference) { differences.push_back(what + difference); };
  if (!fs::exists(before) || !fs::exists(after))
    return differences.push_back(before.filename().string() + " is missing");
  const TensorFile old = read_safetensors(before), now = read_safetensors(after);
  const TensorIndex before_index(old), index(now);
  for (const NamedTensor& tensor : now.tensors) {
    if (before_index.find(tensor.name) == nullptr) add(tensor.name + " was not there before");
  }
  for (const NamedTensor& tensor : old.tensors) {
    const NamedTensor* other = index.find(tensor.name);
    if (other == nullptr || other->shape != tensor.shape) {
      add(tensor.name + " is missing or has another shape now");
      continue;
    }
    std::size_t count = 0;
    float largest = 0;
    for (std::size_t i = 0; i < tensor.values.size(); ++i) {
      if (std::memcmp(&tensor.values[i], &other->values[i], sizeof(float)) == 0) continue;
      ++count;
      largest = std::max(largest, std::abs(tensor.values[i] - other->values[i]));
    }
    if (count > 0)
      add(fmt::format("{}: {} of {} values differ, by {:.3g} at most", tensor.name, count,
                      tensor.values.size(), largest));
  }
}

// Trains the run of `record` again and compares. If the training was stopped by a signal, sets `exit_code`,
// and the result is not complete.
VerifiedRun verify_run(const RunRecord& record, const VerifyOptions& options,
                       const SweepEnvironment& environment, int& exit_code) try {
  if (!record.config.is_object() || !record.config.contains("network"))
    return {.name = record.name,
            .not_compared = "it was trained by another program, and only that can repeat it"};
  const fs::path before = options.directory / record.name;
  if (!is_deterministic(record.kernels)) {
    return {
        .name = record.name,
        .not_compared = fmt::format("trained with \"deterministic\": false, by kernels that give other bits "
                                    "each time: {}",
                                    record.kernels)};
  }
  const TemporaryFolder scratch(fs::temp_directory_path() / "sweep-verify.");
  std::ostringstream ignored;
  SweepEnvironment silent = environment;
  silent.out = &ignored;
  Sweep sweep;
  sweep.name = "verify";
  sweep.file = options.directory / kSweepFile;
  sweep.runs = {config_without_logs(record)};
  for (const auto& [key, value] : record.params) sweep.keys.push_back(key);
  sweep.resolved = {{"name", "verify"}};
  const fs::path after = scratch.path() / sweep.name / record.name;
  if (continues(sweep.runs[0])) {
    fs::create_directories(after);
    fs::copy_file(before / kStartFile, after / kStartFile);
  }
  const SweepOutcome outcome = run_sweep(
      sweep, {.logdir = scratch.path(), .threads = options.threads, .strict = true, .quiet = true}, silent);
  VerifiedRun run{.name = record.name};
  if (outcome.exit_code > 1) {
    exit_code = outcome.exit_code;
    return run;
  }
  compare_records(record, outcome.runs.at(0), run.differences);
  try {
    if (fs::exists(after / kCheckpointFile))
      compare_weights(before / kCheckpointFile, after / kCheckpointFile, "", run.differences);
    if (record.best_epoch)
      compare_weights(before / kBestFile, after / kBestFile, fmt::format("{}: ", kBestFile), run.differences);
  } catch (const DataError& error) {
    run.differences.emplace_back(error.what());
  }
  return run;
} catch (const nlohmann::json::exception& error) {  // of a value in the record that has another type
  throw DataError(fmt::format("{}: not a run record: {}",
                              (options.directory / record.name / kRunRecordFile).string(),
                              json_reason(error)));
}

}  // namespace

VerifyReport verify_sweep(const VerifyOptions& options, const SweepEnvironment& environment) {
  std::vector<RunRecord> runs = finished_runs(options.directory);
  VerifyReport report;
  report.finished = runs.size();
  for (const RunRecord& record : choose_runs(std::move(runs), options.runs)) {
    int stopped = 0;
    VerifiedRun run = verify_run(record, options, environment, stopped);
    if (stopped != 0) {
      report.exit_code = stopped;
      break;
    }
    options.on_run(run);
    if (!run.differences.empty()) report.exit_code = 1;
    report.runs.push_back(std::move(run));
  }
  const auto is_compared = [](const VerifiedRun& run) { return run.not_compared.empty(); };
  constexpr int kNothingToCompare = 2;
  if (report.exit_code == 0 && std::ranges::none_of(report.runs, is_compared))
    report.exit_code = kNothingToCompare;
  return report;
}

std::string verified_text(const VerifiedRun& run) {
  if (!run.not_compared.empty()) return run.name + ": not compared: " + run.not_compared;
  if (run.differences.empty()) return run.name + ": every bit is the same";
  return fmt::format("{}: differs\n  {}", run.name, fmt::join(run.differences, "\n  "));
}

}  // namespace sweep
