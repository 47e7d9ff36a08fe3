// Compares the runs that are asked for with those that earlier starts have left in a sweep's directory.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runmanager/config/run_config.h"
#include "runmanager/records/results.h"
#include "runmanager/records/run_identity.h"

namespace sweep {

/// What happens to a run.
enum class RunFate {
  kNew,        // trained from the beginning: nothing of it is there, or nothing that is worth keeping
  kKept,       // finished, and stays as it is
  kContinued,  // goes on after its last finished epoch
  kInTheWay,   // its directory holds a run with other settings
};

/// "new", "kept", "continued" or "in the way".
std::string_view to_string(RunFate fate);

struct ExistingRun {
  RunFate fate = RunFate::kNew;
  /// Name of the directory that holds the run, below the sweep's. It differs from the run's name if the run
  /// is to be adopted: the sweep file names it otherwise now, because it has another axis. Empty for kNew.
  std::string directory = {};
  std::optional<RunRecord> record = {};             // of kKept, kContinued and kInTheWay
  std::vector<SettingDifference> differences = {};  // of kInTheWay
  std::string note = {};                            // anything else the user should know; may be empty

  bool is_adopted(const RunConfig& config) const { return !directory.empty() && directory != config.name; }
};

/// The identity of a run that is asked for.
using IdentityOf = std::function<RunIdentity(const RunConfig&)>;

/// Which runs of other names are adopted: any that is the same, or only those that an earlier version named,
/// with the JSON of a list or an object in the name.
enum class Adopted { kAnyName, kFormerNames };

/// One entry for each of `runs`. A finished run is kept also if it has more epochs than are asked for. Files
/// of finished runs are read and checked: a run whose events or checkpoint are damaged is not kept. Runs that
/// failed are continued, or kept if `retry_failed` is false. Throws IoError if the directory
/// cannot be read, and ReadError if files of a run are there and cannot be, also if the run has a name
/// that none of `runs` has and one of them is missing: it may be that one.
std::vector<ExistingRun> find_existing_runs(const std::filesystem::path& sweep_directory,
                                            std::span<const RunConfig> runs, const IdentityOf& identity,
                                            bool retry_failed, Adopted adopted = Adopted::kAnyName);

/// Throws ConfigError if any of `existing` is in the way: which runs, which settings differ, and what can be
/// done. A difference that all of them share is listed once.
void refuse_runs_in_the_way(const std::filesystem::path& sweep_directory, std::span<const RunConfig> runs,
                            std::span<const ExistingRun> existing);

}  // namespace sweep
