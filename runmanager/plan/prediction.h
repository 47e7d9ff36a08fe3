// A pilot's prediction of a sweep's time, kept until the sweep was run and can be compared with it.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "runmanager/plan/plan.h"
#include "runmanager/records/results.h"

namespace sweep {

/// Keeps the prediction of the sweep that is, or will be, in `directory`, in the user's cache. Does nothing
/// for a plan without times, without a cache, or if the cache cannot be written.
void save_prediction(const SweepPlan& plan, const std::filesystem::path& directory);

/// Compares the prediction for `directory`, if there is one, with the `seconds` that the sweep took with
/// `jobs` runs at once, and forgets it: "Predicted 41 s, took 43 s (+4.9 %)". Empty if there is none, or if
/// the sweep did something else: other runs, or not all of them to their ends.
std::string compare_with_prediction(const std::filesystem::path& directory, std::span<const RunRecord> runs,
                                    int jobs, double seconds);

}  // namespace sweep
