// Reads "slurm": what a sweep requests from a cluster.
#pragma once

#include "runmanager/config/problems.h"
#include "runmanager/config/run_config.h"
#include "runmanager/config/slurm_spec.h"
#include "runmanager/text/json_document.h"

namespace sweep {

/// Reads "slurm" of `root`; the defaults if it is not given. Reports every mistake.
SlurmSpec read_slurm(const JsonView& root, Problems& problems);

/// Returns "slurm" of the file of a sweep that was read. It is not in Sweep, because training does not depend
/// on it.
SlurmSpec slurm_spec(const Sweep& sweep);

}  // namespace sweep
