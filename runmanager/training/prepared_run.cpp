#include "runmanager/training/prepared_run.h"

#include "core/base/random.h"
#include "runmanager/records/run_record_json.h"

namespace sweep {
namespace {

// The seed from which a repeat draws its initial weights and dropout masks. Repeat 0 has the sweep's own.
std::uint64_t weights_seed(std::uint64_t seed, std::uint32_t repeat) {
  if (repeat == 0) return seed;
  const auto mixed = philox4x32({repeat, 0, 0, static_cast<std::uint32_t>(RandomUse::kInitialisation)},
                                {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  return static_cast<std::uint64_t>(mixed[1]) << 32 | mixed[0];
}

}  // namespace

EngineOptions engine_options(const RunConfig& config, const Device& device) {
  return {.device = device,
          .batch_size = config.batch_size,
          .optimizer = scheduled_optimizer(config.optimizer, config.schedule),
          .seed = weights_seed(config.seed, config.repeat),
          .loss = config.loss,
          .clip_norm = config.clip_norm,
          .augment = {config.augment, config.seed, config.repeat},
          .placement = config.placement,
          .deterministic = config.deterministic,
          .parallel = config.parallel,
          .accumulation_steps = config.accumulate};
}

EngineOptions engine_options(const PreparedRun& run) {
  EngineOptions options = engine_options(*run.config, run.device);
  options.transform = run.data->transform;
  return options;
}

LoaderOptions loader_options(const RunConfig& config) {
  return {.batch_size = config.batch_size,
          .shuffle = config.shuffle,
          .num_workers = config.num_workers,
          .seed = config.seed,
          .repeat = config.repeat,
          .augment = config.augment};
}

std::optional<Placement> prepare_engine(Engine& engine, const PreparedRun& run, DataLoader& loader) {
  std::vector<Subset> evaluation;
  for (const Subset* part : {&run.data->validation, &run.data->test})
    if (part->count > 0) evaluation.push_back(*part);
  const std::optional<Placement> placement = engine.prepare(run.data->train, evaluation);
  // With the samples on its device, the engine gathers and augments batches itself: there is nothing to
  // prepare ahead.
  loader.set_on_device(placement == Placement::kDevice);
  return placement;
}

void set_initial_weights(Engine& engine, const PreparedRun& run) {
  if (!run.weights.parameters.empty()) {
    engine.set_parameters(run.weights.parameters);
    engine.set_buffers(run.weights.buffers);
    return;
  }
  const std::uint64_t seed = weights_seed(run.config->seed, run.config->repeat);
  engine.set_parameters(initial_parameters(*run.network, seed));
}

RunSchedule::RunSchedule(const RunConfig& config, std::int64_t batches)
    : config_(config), options_(config.schedule), batches_(batches), lineage_(lineage_of(config.resolved)) {}

StepValues RunSchedule::at(int epoch, std::int64_t batch) const {
  double lr = config_.lr;
  if (!lineage_.empty() && epoch < lineage_.back().until) {
    const ParamValue* const before = find_param(params_at(lineage_, config_.params, epoch + 1), "lr");
    if (before != nullptr) lr = to_json(*before).get<double>();
  }
  return values_at(options_, lr,
                   {.epoch = epoch, .step = batch, .epochs = config_.epochs, .steps_per_epoch = batches_});
}

Run describe_run(const RunConfig& config, const std::string& device, int jobs) {
  return {.name = config.name,
          .params = config.params,
          .not_swept = config.not_swept,
          .device = device,
          .loss = config.loss,
          .log = config.log,
          .config = config.resolved,
          .jobs = jobs};
}

}  // namespace sweep
