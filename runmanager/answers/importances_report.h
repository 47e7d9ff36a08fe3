// The importances of a search's settings as a table, text and JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "runmanager/answers/importances.h"
#include "runmanager/terminal/table.h"

namespace sweep {

/// A row per setting, the most important first. In CSV the shares are plain.
TextTable importances_table(const Importances& importances, TableFormat format);

/// That table with its explanation. Ends with a newline.
std::string importances_text(const Importances& importances, bool unicode);

/// Everything in `importances`.
nlohmann::ordered_json importances_json(const Importances& importances);

}  // namespace sweep
