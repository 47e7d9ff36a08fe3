// JSON on stdout, the way all commands write it.
#pragma once

#include <nlohmann/json.hpp>

namespace sweep {

/// Prints `json` with an indent of two and a newline at the end. Bytes that are not UTF-8, which texts from
/// files may have, are replaced.
void print_json(const nlohmann::ordered_json& json);

}  // namespace sweep
