// An evaluation as text and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "runmanager/inference/run_scores.h"

namespace sweep {

/// Loss and measures, a table of the classes or targets, and the confusion matrix, or the most frequent
/// mistakes of many classes.
std::string evaluation_text(const LoadedRun& run, const RunScores& scores, bool unicode);

/// All of it; the confusion matrix whole.
nlohmann::ordered_json evaluation_json(const LoadedRun& run, const RunScores& scores);

}  // namespace sweep
