// Reads "parallel" of a sweep file, and writes it to "resolved" of a run.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "core/spec/parallel.h"
#include "runmanager/config/problems.h"
#include "runmanager/text/json_document.h"

namespace sweep {

/// Reads "parallel" of the sweep file `tree`. Adds a problem for everything that is wrong with it.
ParallelOptions read_parallel(const JsonNode& tree, Problems& problems);

/// Returns "parallel" of a run: "none", or an object with what is not left out.
nlohmann::ordered_json parallel_json(const ParallelOptions& options);

/// What tables and the names of runs call it: "none", "data-2", "pipeline-2x4" (stages, parts of a batch),
/// "conv1-cpu+fc1-cpu.1". Without characters that names of runs escape.
std::string parallel_text(const ParallelOptions& options);

}  // namespace sweep
