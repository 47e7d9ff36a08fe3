// sweep.json: the sweep file as it was expanded.
#pragma once

#include <nlohmann/json.hpp>

#include "runmanager/config/run_config.h"

namespace sweep {

/// What sweep.json has: the resolved file, the names of the runs, those that were left out with the reasons,
/// and `program`, the provenance.
nlohmann::ordered_json sweep_json(const Sweep& sweep, const nlohmann::ordered_json& program);

}  // namespace sweep
