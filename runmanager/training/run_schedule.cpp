#include "runmanager/training/run_schedule.h"

#include "runmanager/records/run_record_json.h"

namespace sweep {

RunSchedule::RunSchedule(const RunConfig& config, std::int64_t batches)
    : config_(config),
      options_(resolve_schedule(config.schedule)),
      batches_(batches),
      lineage_(lineage_of(config.resolved)) {}

StepValues RunSchedule::at(int epoch, std::int64_t batch) const {
  double lr = config_.lr;
  if (!lineage_.empty() && epoch < lineage_.back().until) {
    const ParamValue* const before = find_param(params_at(lineage_, config_.params, epoch + 1), "lr");
    if (before != nullptr) lr = to_json(*before).get<double>();
  }
  return values_at(options_, lr,
                   {.epoch = epoch, .step = batch, .epochs = config_.epochs, .steps_per_epoch = batches_});
}

}  // namespace sweep
