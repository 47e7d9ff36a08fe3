// A run's configuration back from its record: for processes and commands that have no sweep file.
#pragma once

#include "runmanager/config/run_config.h"
#include "runmanager/records/results.h"

namespace sweep {

/// The configuration that `record` was made with; `index` is not in it. Relative paths stay as they are, from
/// the directory where the sweep was started. Throws DataError, naming the run, if the record's configuration
/// is not one that this version understands.
RunConfig recorded_config(const RunRecord& record);

}  // namespace sweep
