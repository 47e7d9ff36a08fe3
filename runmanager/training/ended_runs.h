// Records of runs that end without being trained. Not part of the installed interface.
#pragma once

#include "runmanager/training/run_recorder.h"

namespace sweep {

/// Ends a run that is trained no further: writes the end of the session, with the reason, after its events,
/// in the place of an end that they have, and `record`, with their sizes, to run.json. Nothing else may write
/// to the run's files. Throws IoError, and DataError if the events cannot be read; so does the next one.
void record_pruned_run(const RecorderOptions& options, const Run& run, RunRecord& record);

/// Ends a run whose process ended before the run did: writes the end of the session, with the reason, after
/// what that process has written, and `record` to run.json. That process must be gone.
void record_lost_run(const RecorderOptions& options, const Run& run, const RunRecord& record);

}  // namespace sweep
