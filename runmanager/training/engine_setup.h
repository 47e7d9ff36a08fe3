// What an engine needs before the first batch of a run.
#pragma once

#include <optional>

#include "core/data/data_loader.h"
#include "core/engine/engine.h"
#include "runmanager/training/prepared_run.h"

namespace sweep {

/// Makes the engine do its one-time work now, so that it does not count as part of the first epoch. Returns
/// where it has put the samples, and sets `loader`, which gives the training samples, to that.
std::optional<Placement> prepare_engine(Engine& engine, const PreparedRun& run, DataLoader& loader);

/// Sets the weights that the run begins with: those it was given, or random ones by its seed.
void set_initial_weights(Engine& engine, const PreparedRun& run);

}  // namespace sweep
