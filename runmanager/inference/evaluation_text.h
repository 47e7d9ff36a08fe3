// An evaluation as tables, as text and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "runmanager/inference/run_scores.h"
#include "runmanager/terminal/table.h"

namespace sweep {

/// A table of the classes or targets; of classes also the confusion matrix, or of many classes their most
/// frequent mistakes if there are any. In CSV numbers are plain.
std::vector<TextTable> evaluation_tables(const RunScores& scores, TableFormat format);

/// Loss and measures, and those tables.
std::string evaluation_text(const LoadedRun& run, const RunScores& scores, bool unicode);

/// All of it; the confusion matrix whole.
nlohmann::ordered_json evaluation_json(const LoadedRun& run, const RunScores& scores);

}  // namespace sweep
