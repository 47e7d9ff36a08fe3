// The JSON schema of sweep files, made of the tables that the program itself checks with.
#pragma once

#include <nlohmann/json.hpp>

namespace sweep {

/// JSON Schema, draft 2020-12, for editors and other programs. load_sweep() rejects everything that it
/// rejects; only load_sweep() checks what depends on several values or on the machine (shapes, devices,
/// files). The one exception: names of data sets that only $SWEEP_DATA has.
nlohmann::ordered_json sweep_schema();

}  // namespace sweep
