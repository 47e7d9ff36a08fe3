#include "runmanager/sweep/make_run_kind.h"

#include <utility>

#include "runmanager/kinds/network/network_worker.h"

namespace sweep {

std::unique_ptr<RunKind> make_run_kind(const Sweep&, NetworkEnvironment environment,
                                       nlohmann::ordered_json program) {
  return std::make_unique<NetworkKind>(std::move(environment), std::move(program));
}

std::unique_ptr<KindWorker> make_kind_worker(const RunConfig&,
                                             const std::vector<std::shared_ptr<const Dataset>>& datasets) {
  return std::make_unique<NetworkWorker>(datasets);
}

}  // namespace sweep
