#include "runmanager/training/training_setup.h"

#include <vector>

#include "runmanager/records/run_record_json.h"

namespace sweep {

std::optional<Placement> prepare_engine(Engine& engine, const PreparedRun& run, DataLoader& loader) {
  std::vector<Subset> evaluation;
  for (const Subset* part : {&run.data->validation, &run.data->test})
    if (part->count > 0) evaluation.push_back(*part);
  const std::optional<Placement> placement = engine.prepare(run.data->train, evaluation);
  // With the samples on its device, the engine gathers and augments batches itself: there is nothing to
  // prepare ahead.
  loader.set_num_workers(placement == Placement::kDevice ? 0 : run.config->num_workers);
  loader.set_augmented_by_engine(placement == Placement::kDevice);
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
    : config_(config),
      options_(resolve_schedule(config.schedule)),
      batches_(batches),
      lineage_(lineage_of(config.resolved)) {}

StepValues RunSchedule::at(int epoch, std::int64_t batch) const {
  double lr = config_.lr;
  if (!lineage_.empty() && epoch < lineage_.back().until) {
    const ParamValue* const before = find_param(params_at(lineage_, config_.params, epoch + 1), "lr");
    if (before != nullptr) lr = to_json(*before).get<double>();
  }
  return values_at(options_, lr,
                   {.epoch = epoch, .step = batch, .epochs = config_.epochs, .steps_per_epoch = batches_});
}

}  // namespace sweep
