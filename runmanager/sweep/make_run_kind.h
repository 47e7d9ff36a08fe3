// Which kinds of runs there are.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "runmanager/kinds/network/network_kind.h"
#include "runmanager/kinds/run_kind.h"

namespace sweep {

/// The kind of the sweep's runs, for the process of the sweep. `program`: program_provenance().
std::unique_ptr<RunKind> make_run_kind(const Sweep& sweep, NetworkEnvironment environment,
                                       nlohmann::ordered_json program);

/// The same for a worker, by the first of its runs. `datasets`: those of RunKind::share_datasets(), opened in
/// this process.
KindWorker make_kind_worker(const RunConfig& first,
                            const std::vector<std::shared_ptr<const Dataset>>& datasets);

}  // namespace sweep
