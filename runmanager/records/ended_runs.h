// How runs end where several processes share a sweep: the record in a run's chain of claims is what counts,
// and its files are put in their places after it.
#pragma once

#include <filesystem>

#include "runmanager/claims/claim_chains.h"
#include "runmanager/records/results.h"

namespace sweep {

/// Gives the checkpoints of the attempt that ended the run their usual names, removes what other attempts
/// have left, and writes run.json. Any process may do so, also at once with others, and after one that was
/// killed over it. Returns the record. Throws IoError, and DataError if `end` is damaged.
RunRecord place_ended_run(const std::filesystem::path& sweep_directory, const ChainEnd& end);

/// The chains of a sweep's runs.
std::filesystem::path claims_of_runs(const std::filesystem::path& sweep_directory);

/// Finishes what processes that shared the directory have left undone, and takes from them, should any of
/// them live after all, the runs that they had claimed. For a process that has the directory for itself. Does
/// nothing if nobody has shared it. Throws IoError.
void settle_claims(const std::filesystem::path& sweep_directory);

/// Places a run that has ended. Returns whether its end is damaged, as after a power cut: it is free again
/// then.
bool settle_run(const std::filesystem::path& sweep_directory, ClaimChains& chains, const std::string& run);

}  // namespace sweep
