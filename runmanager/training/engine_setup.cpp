#include "runmanager/training/engine_setup.h"

#include <vector>

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

}  // namespace sweep
