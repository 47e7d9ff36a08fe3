// Rebuilds a run's configuration from its record: for worker processes and commands without a sweep file.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runmanager/config/params.h"
#include "runmanager/config/run_config.h"
#include "runmanager/records/results.h"

namespace sweep {

/// The configuration of the run, except `index`, which a record does not have. Relative paths stay relative
/// to the directory where the sweep was started. Throws DataError, naming the run, if the record's
/// configuration is not one that this version understands.
RunConfig recorded_config(const RunRecord& record);

/// The device that a run names; nothing if it is none of this program's, as other training loops and programs
/// may write anything there.
std::optional<Device> known_device(std::string_view name);

/// Makes the paths of `config`, that of `record`, absolute: relative to the directory where the sweep was
/// started.
void resolve_paths(RunConfig& config, const RunRecord& record);

/// A run that another continues, after the epoch `until`.
struct Ancestor {
  std::string run;
  int until = 0;
  Params params;
};

/// The oldest one first, with rising epochs.
using Lineage = std::vector<Ancestor>;

/// Whether a run continues another one.
bool continues(const RunConfig& config);

nlohmann::ordered_json to_json(const Lineage& lineage);

/// Whether a run's configuration is that of a member of a population, which has a lineage, maybe an empty
/// one. What else a person's own training loop may call so is none.
bool is_member(const nlohmann::ordered_json& config);

/// The lineage in a run's configuration; empty for a run that begins from new weights. Throws
/// nlohmann::json::exception if it is damaged.
Lineage lineage_of(const nlohmann::ordered_json& config);

/// The parameters with which `epoch` was trained of a run that has `params` now.
const Params& params_at(const Lineage& lineage, const Params& params, int epoch);

/// The seconds of the run so far, without those of the run that it continues.
double own_seconds(const RunRecord& run);

}  // namespace sweep
