// Finds a value in nested objects.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace sweep {

/// The value at `path`, keys of objects joined by dots ("optimizer.momentum"), or nullptr if there is none.
/// Points into `root`. Thread-safe.
const nlohmann::ordered_json* find_at(const nlohmann::ordered_json& root, std::string_view path);

}  // namespace sweep
