#include "runmanager/training/epoch_watch.h"

#include <fmt/format.h>

#include <cmath>

#include "core/base/file.h"
#include "core/base/text.h"

namespace sweep {

bool EpochWatch::add(const EpochRecord& epoch) {
  const std::optional<double> value = epoch[*stop_.goal.metric];
  if (!value) return false;
  const double gain = best_ ? stop_.goal.cost(*best_) - stop_.goal.cost(*value) : 0;
  if (std::isnan(*value) || (best_ && !(gain > stop_.min_delta))) {
    ++without_improvement_;
    return false;
  }
  best_ = *value;
  best_epoch_ = epoch.epoch;
  without_improvement_ = 0;
  return true;
}

std::string EpochWatch::reason() const {
  const std::string text =
      fmt::format("{} has not improved{} for {}", stop_.goal.asked,
                  stop_.min_delta > 0 ? fmt::format(" by more than {}", stop_.min_delta) : "",
                  counted(static_cast<std::size_t>(without_improvement_), "epoch"));
  return best_ ? fmt::format("{}; it was best in epoch {}: {}", text, best_epoch_, short_number(*best_))
               : text;
}

bool resume_best_file(const RunConfig& config, const std::filesystem::path& run_directory,
                      std::optional<int> best_epoch, int last_epoch) {
  const std::filesystem::path best = run_directory / kBestFile;
  if (!keeps_best(config)) {
    std::error_code error;
    std::filesystem::remove(best, error);  // It need not stay the best.
    return false;
  }
  // The process may have ended before it gave the checkpoint its other name.
  if (best_epoch == last_epoch) link_file_atomically(run_directory / kCheckpointFile, best);
  return best_epoch.has_value();
}

std::optional<EpochWatch> make_epoch_watch(const RunConfig& config, bool has_validation) {
  if (config.stop) return EpochWatch(*config.stop);
  if (!keeps_best(config)) return std::nullopt;
  return EpochWatch(
      {.goal = asked_goal(has_validation ? "Loss/validation" : "Loss/train", false), .patience = 0});
}

}  // namespace sweep
