// A comparison as text, JSON, CSV, Markdown and LaTeX.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "runmanager/answers/comparison.h"
#include "runmanager/terminal/table.h"

namespace sweep {

/// Per value a table of pairs and what it says in a sentence; then what was left out. kCsv: a row per pair,
/// with plain numbers and seconds. kJson is comparison_json().
/// `width`: of the terminal in columns, into which the tables of kText are fitted; 0: any.
std::string comparison_text(const Comparison& comparison, TableFormat format, bool unicode, int width = 0);

/// Everything, with plain numbers and seconds. JSON has no NaN: see json_number().
nlohmann::ordered_json comparison_json(const Comparison& comparison);

}  // namespace sweep
