// When results of an earlier start are results of this run, too.
#pragma once

#include <nlohmann/json.hpp>

#include "runmanager/config/run_config.h"
#include "runmanager/records/results.h"

namespace sweep {

/// Whether `old` is of a run with the same name, typed parameters (1 and 1.0 differ), configuration with its
/// seed, numerics of the program, initial weights and, where both know it, data. `provenance` is that of the
/// new run.
bool same_identity(const RunRecord& old, const RunConfig& config, const nlohmann::ordered_json& provenance);

}  // namespace sweep
