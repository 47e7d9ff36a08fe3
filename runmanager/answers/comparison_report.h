// A comparison as text, JSON, CSV, Markdown and LaTeX.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "runmanager/answers/comparison.h"

namespace sweep {

/// For a terminal: per value a table of pairs and what it says in a sentence; then what was left out.
std::string comparison_text(const Comparison& comparison, bool unicode);

/// Everything, with plain numbers and seconds. JSON has no NaN: see json_number().
nlohmann::ordered_json comparison_json(const Comparison& comparison);

/// A row per pair, with plain numbers and seconds.
std::string comparison_csv(const Comparison& comparison);

/// The tables of comparison_text(), each with its sentence.
std::string comparison_markdown(const Comparison& comparison);
std::string comparison_latex(const Comparison& comparison);

}  // namespace sweep
