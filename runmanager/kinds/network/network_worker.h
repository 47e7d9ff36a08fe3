// Trains networks in a worker process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runmanager/kinds/run_kind.h"

namespace sweep {

/// Keeps what consecutive runs mostly share: the network and encoded images.
class NetworkWorker final : public KindWorker {
 public:
  /// `datasets`: those of RunKind::share_datasets(), opened in this process.
  explicit NetworkWorker(std::vector<std::shared_ptr<const Dataset>> datasets)
      : datasets_(std::move(datasets)) {}

  /// `options.image_grids` is set here.
  TrainedRun run(const WorkerTask& task, const ReportEvent& report, const TrainerOptions& options) override;

 private:
  std::shared_ptr<const Network> network_of(const RunConfig& config, const Dataset& data);

  std::vector<std::shared_ptr<const Dataset>> datasets_;
  ImageGridCache image_grids_;
  std::shared_ptr<const Network> network_;
  std::string network_key_;
};

}  // namespace sweep
