// How much of a search is left to be trained, by its records alone.
#pragma once

#include <cstddef>
#include <span>

#include "runmanager/config/run_config.h"
#include "runmanager/records/results.h"

namespace sweep {

/// Returns how many trials can be trained now; 0: the search has come to its end. `sweep`:
/// waits_for_results() holds for its search. `records`: of the trials that are known, in their order.
/// `tries_failed`: failed ones are trained again.
std::size_t open_trials(const Sweep& sweep, std::span<const RunRecord> records, bool tries_failed);

}  // namespace sweep
