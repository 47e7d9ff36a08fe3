#include "runmanager/plan/plan.h"

#include <algorithm>

#include "core/data/data_loader.h"
#include "core/network/network.h"
#include "runmanager/training/evaluation.h"

namespace sweep {
namespace {

// Reckoned: beside the engine's work, a worker needs about this long per run (its directory, pictures, files)
// and per epoch (events, checkpoint). With them, sweeps on two quiet cores were predicted within 5 %.
constexpr double kRunSeconds = 0.03, kEpochSeconds = 0.002;

// The time that `train` needs per sample, from `seconds` of it. The first batches warm up caches and are not
// counted, unless the set has no others.
template <typename Use>
double seconds_per_sample(DataLoader& loader, Engine& engine, const PilotOptions& options, const Use& use) {
  constexpr int kWarmUp = 2, kFewest = 3;
  std::size_t samples = 0;
  int batches = 0;
  std::uint32_t epoch = 0;
  loader.begin_epoch(epoch);
  double begin = options.clock(), end = begin;
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
      begin = options.clock();
      continue;
    }
    if (batches < kWarmUp) continue;
    samples += batch->size();
    end = options.clock();
    if (batches >= kWarmUp + kFewest && end - begin >= options.seconds) break;
  }
  engine.take_totals();
  return (options.clock() - begin) / static_cast<double>(samples);
}

double evaluation_seconds(const Subset& samples, Engine& engine, const PreparedRun& run,
                          const PilotOptions& options) {
  if (samples.count == 0) return 0;
  DataLoader loader(samples, {.batch_size = run.config->batch_size});
  PilotOptions shorter = options;
  shorter.seconds = options.seconds / 4;
  return static_cast<double>(samples.count) *
         seconds_per_sample(loader, engine, shorter, [&](const Batch& batch) { engine.evaluate(batch); });
}

}  // namespace

PilotTimes run_pilot(const PreparedRun& run, const PilotOptions& options) {
  const double begin = options.clock();
  EngineOptions engine_settings = engine_options(run);
  engine_settings.threads = options.threads;
  const std::unique_ptr<Engine> engine = options.make_engine(*run.network, engine_settings);
  set_initial_weights(*engine, run);
  DataLoader loader(run.data->train, loader_options(*run.config));
  prepare_engine(*engine, run, loader);
  PilotTimes times;
  times.setup = options.clock() - begin + kRunSeconds;
  // A learning rate of 0 takes as long as any other, and cannot diverge.
  const double sample =
      seconds_per_sample(loader, *engine, options, [&](const Batch& batch) { engine->train(batch, 0); });
  const double validation = evaluation_seconds(run.data->validation, *engine, run, options);
  times.epoch = sample * static_cast<double>(run.data->train.count) + validation + kEpochSeconds;
  times.end = evaluation_seconds(run.data->test, *engine, run, options);
  return times;
}

}  // namespace sweep
