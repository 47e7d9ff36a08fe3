// The effects of a sweep's settings as tables, text and JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runmanager/answers/effects.h"
#include "runmanager/terminal/table.h"

namespace sweep {

/// The share of each setting and pair in the differences, the mean of each value, and the runs that no other
/// run beats, if there are any. In CSV the shares are plain.
std::vector<TextTable> effects_tables(const Effects& effects, TableFormat format, bool unicode);

/// Those tables with their explanations. Ends with a newline.
std::string effects_text(const Effects& effects, bool unicode);

/// Everything in `effects`; null for what is not known.
nlohmann::ordered_json effects_json(const Effects& effects);

}  // namespace sweep
