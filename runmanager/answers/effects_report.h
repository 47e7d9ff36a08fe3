// The effects of a sweep's settings as text and JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "runmanager/answers/effects.h"

namespace sweep {

/// Tables for a terminal: the share of each setting and pair in what differs, the mean of each value, and the
/// runs that no other run beats. Ends with a newline.
std::string effects_text(const Effects& effects, bool unicode);

/// Everything in `effects`; null for what is not known.
nlohmann::ordered_json effects_json(const Effects& effects);

}  // namespace sweep
