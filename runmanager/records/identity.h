// Decides whether the results of an earlier start are results of this run, too.
#pragma once

#include <nlohmann/json.hpp>

#include "runmanager/config/run_config.h"
#include "runmanager/records/results.h"

namespace sweep {

/// Whether `old` belongs to a run with the same name, typed parameters (1 and 1.0 differ), configuration
/// including the seed, numerics of the program and initial weights. Data sets are compared where both
/// provenances have their digests. `provenance`: of the new run.
bool same_identity(const RunRecord& old, const RunConfig& config, const nlohmann::ordered_json& provenance);

}  // namespace sweep
