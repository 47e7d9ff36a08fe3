// How long a sweep takes: measured by a few batches, and compared with the truth afterwards.
#include "runmanager/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/data/data_loader.h"
#include "core/data/known_datasets.h"
#include "core/engine/engine.h"
#include "core/network/network.h"
#include "runmanager/config/params.h"
#include "runmanager/records/provenance.h"
#include "runmanager/training/evaluation.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// Reckoned: beside the engine's work, a worker needs about this long per run (its directory, pictures, files)
// and per epoch (events, checkpoint). With them, sweeps on two quiet cores were predicted within 5 %.
constexpr double kRunSeconds = 0.03, kEpochSeconds = 0.002;

// How long training and evaluation are measured; at least three batches are used all the same.
constexpr double kTrainingSeconds = 0.3, kEvaluationSeconds = kTrainingSeconds / 4;

// The time that `use` needs per sample, from `seconds` of it. The first batches warm up caches and are not
// counted.
template <typename Use>
double seconds_per_sample(DataLoader& loader, Engine& engine, double seconds, const Use& use) {
  constexpr int kWarmUp = 2, kFewest = 3;
  std::size_t samples = 0;
  int batches = 0;
  std::uint32_t epoch = 0;
  loader.begin_epoch(epoch);
  double begin = steady_seconds(), end = begin;
  for (;;) {
    const Batch* batch = loader.next();
    if (batch == nullptr) {
      loader.begin_epoch(++epoch);
      continue;
    }
    use(*batch);
    if (batches % engine.batches_between_totals() == 0) engine.take_totals();
    if (++batches == kWarmUp) {
      engine.take_totals();
      begin = steady_seconds();
      continue;
    }
    if (batches < kWarmUp) continue;
    samples += batch->size();
    end = steady_seconds();
    if (batches >= kWarmUp + kFewest && end - begin >= seconds) break;
  }
  engine.take_totals();
  return (steady_seconds() - begin) / static_cast<double>(samples);
}

double evaluation_seconds(const Subset& samples, Engine& engine, std::size_t batch_size) {
  if (samples.count == 0) return 0;
  DataLoader loader(samples, {.batch_size = batch_size});
  return static_cast<double>(samples.count) *
         seconds_per_sample(loader, engine, kEvaluationSeconds,
                            [&](const Batch& batch) { engine.evaluate(batch); });
}

// One file per sweep's directory, in the user's cache; empty without a cache.
fs::path file_of(const fs::path& directory) {
  const fs::path cache = user_cache_directory();
  if (cache.empty()) return {};
  std::error_code error;
  const std::string text = fs::weakly_canonical(fs::absolute(directory, error), error).string();
  return cache / "predictions" / (hash_of(text) + ".json");
}

}  // namespace

PilotTimes run_pilot(const PreparedRun& run, int threads) {
  const double begin = steady_seconds();
  EngineOptions engine_settings = engine_options(run);
  engine_settings.threads = threads;
  const std::unique_ptr<Engine> engine = make_engine(*run.network, engine_settings);
  set_initial_weights(*engine, run);
  DataLoader loader(run.data->train, loader_options(*run.config));
  prepare_engine(*engine, run, loader);
  PilotTimes times;
  times.setup = steady_seconds() - begin + kRunSeconds;
  // A learning rate of 0 takes as long as any other, and cannot diverge.
  const double sample = seconds_per_sample(loader, *engine, kTrainingSeconds,
                                           [&](const Batch& batch) { engine->train(batch, 0); });
  const std::size_t batch_size = run.config->batch_size;
  const double validation = evaluation_seconds(run.data->validation, *engine, batch_size);
  times.epoch = sample * static_cast<double>(run.data->train.count) + validation + kEpochSeconds;
  times.end = evaluation_seconds(run.data->test, *engine, batch_size);
  return times;
}

void save_prediction(const SweepPlan& plan) {
  const fs::path file = file_of(plan.directory);
  const std::optional<double> seconds = plan.seconds();
  if (file.empty() || !seconds || *seconds <= 0) return;
  Json json = {{"directory", plan.directory.string()}, {"jobs", plan.jobs}, {"seconds", *seconds}};
  Json runs = Json::array();
  for (const PlannedRun& run : plan.runs) {
    if (run.trains()) runs.push_back(run.config->name);
  }
  json["runs"] = std::move(runs);
  try {
    fs::create_directories(file.parent_path());
    write_file_atomically(file, json.dump() + "\n");
  } catch (const std::exception&) {
    // The plan was printed; only the comparison is lost.
  }
}

std::string compare_with_prediction(const fs::path& directory, std::span<const RunRecord> runs, int jobs,
                                    double seconds) {
  const fs::path file = file_of(directory);
  std::error_code error;
  if (file.empty() || !fs::exists(file, error)) return "";
  try {
    const Json json = Json::parse(read_file(file));
    fs::remove(file, error);
    const auto expected = json.at("seconds").get<double>();
    if (json.at("jobs").get<int>() != jobs) return "";
    for (const Json& name : json.at("runs")) {
      const auto found = std::ranges::find(runs, name.get<std::string>(), &RunRecord::name);
      if (found == runs.end() || found->status != RunStatus::kCompleted) return "";
    }
    return fmt::format("Predicted {:.3g} s, took {:.3g} s ({:+.1f} %)", expected, seconds,
                       100 * (seconds - expected) / expected);
  } catch (const std::exception&) {
    return "";  // From another version, or damaged: as good as none.
  }
}

}  // namespace sweep
