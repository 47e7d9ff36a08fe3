#include "runmanager/sweep/make_run_kind.h"

#include <utility>

#include "runmanager/kinds/command/command_kind.h"
#include "runmanager/kinds/network/network_kind.h"

namespace sweep {

std::unique_ptr<RunKind> make_run_kind(const Sweep& sweep, NetworkEnvironment environment,
                                       nlohmann::ordered_json program) {
  if (!sweep.runs.empty() && sweep.runs.front().command)
    return std::make_unique<CommandKind>(std::move(program), std::move(environment.unavailable_reason));
  return std::make_unique<NetworkKind>(std::move(environment), std::move(program));
}

KindWorker make_kind_worker(const RunConfig& first,
                            const std::vector<std::shared_ptr<const Dataset>>& datasets) {
  return first.command ? run_program : network_worker(datasets);
}

}  // namespace sweep
