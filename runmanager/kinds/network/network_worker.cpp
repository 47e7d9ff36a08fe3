#include "runmanager/kinds/network/network_worker.h"

#include <utility>

#include "runmanager/records/checkpoint.h"

namespace sweep {

TrainedRun NetworkWorker::run(const WorkerTask& task, const ReportEvent& report,
                              const TrainerOptions& options) {
  PreparedRun run;
  run.config = &task.config;
  run.device = parse_device(task.record.device);
  run.data = datasets_.at(task.dataset);
  run.network = network_of(task.config, *run.data);
  if (!task.config.init.empty()) run.weights = load_weights(task.config.init, *run.network);
  run.provenance = task.record.provenance;
  run.jobs = task.record.jobs;
  run.until_epoch = task.until_epoch;
  TrainerOptions own = options;
  own.image_grids = &image_grids_;
  return train_run(run, report, own);
}

// The network of the last run again, if this run has the same one, as most runs of a sweep do.
std::shared_ptr<const Network> NetworkWorker::network_of(const RunConfig& config, const Dataset& data) {
  std::string key = config.resolved.at("network").dump() + to_string(data.shape);
  if (key != network_key_) {
    network_ = std::make_shared<const Network>(config.network, data.shape);
    network_key_ = std::move(key);
  }
  return network_;
}

}  // namespace sweep
