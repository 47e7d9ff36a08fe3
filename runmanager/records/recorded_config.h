// Rebuilds a run's configuration from its record: for worker processes and commands without a sweep file.
#pragma once

#include "runmanager/config/run_config.h"
#include "runmanager/records/results.h"

namespace sweep {

/// The configuration of the run, except `index`, which a record does not have. Relative paths stay relative
/// to the directory where the sweep was started. Throws DataError, naming the run, if the record's
/// configuration is not one that this version understands.
RunConfig recorded_config(const RunRecord& record);

/// Makes the paths of `config`, that of `record`, absolute: relative to the directory where the sweep was
/// started.
void resolve_paths(RunConfig& config, const RunRecord& record);

}  // namespace sweep
