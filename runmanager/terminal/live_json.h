// A sweep in training as JSON: what it leaves for `sweep status`.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "runmanager/terminal/live_sweep.h"

namespace sweep {

/// All of `sweep`, and what follows from it: "fraction" of the work, "seconds_left", "samples_per_second".
nlohmann::ordered_json to_json(const LiveSweep& sweep);
/// The inverse. Throws DataError, naming `where`, if `json` is no such thing.
LiveSweep live_sweep_from_json(const nlohmann::ordered_json& json, std::string_view where);

}  // namespace sweep
