#include "runmanager/training/log_lines.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>

#include "runmanager/config/metrics.h"

namespace sweep {
namespace {

// "loss 0.5, accuracy 0.85" or "validation loss 0.4, accuracy 0.8", with everything that is measured.
std::string part_text(const EpochRecord& epoch, MetricPart part) {
  constexpr std::string_view kValidation = "validation_";
  const bool is_validation = part == MetricPart::kValidation;
  std::string text;
  for (const Metric& metric : metrics()) {
    const std::optional<double> value = epoch[metric];
    if (metric.part != part || !is_quality(metric) || !value) continue;
    const Metric& in_training = metric_named(metric.key.substr(is_validation ? kValidation.size() : 0));
    text += fmt::format("{}{} {:.6g}",
                        !text.empty()   ? ", "
                        : is_validation ? "validation "
                                        : "",
                        in_training.title, shown(*value));
  }
  return text;
}

// "loss 0.5, accuracy 0.85".
std::string test_text(const std::map<std::string, double>& metrics) {
  constexpr std::string_view kTest = "test_";
  const auto loss = metrics.find("test_loss");
  std::string text = loss == metrics.end() ? "" : fmt::format("loss {:.6g}", shown(loss->second));
  for (const auto& [name, value] : metrics) {
    if (name.starts_with(kTest) && name != "test_loss")
      text += fmt::format(", {} {:.6g}", name.substr(kTest.size()), shown(value));
  }
  return text;
}

}  // namespace

std::string begin_text(const PreparedRun& run, std::size_t batches) {
  return fmt::format("run {} on {}: {} training samples in {} batches, {} parameters", run.config->name,
                     run.device.name(), run.data->train.count, batches, run.network->parameter_count());
}

std::string epoch_text(const EpochRecord& epoch) {
  std::string text = part_text(epoch, MetricPart::kTraining);
  const std::string validation = part_text(epoch, MetricPart::kValidation);
  if (!text.empty() && !validation.empty()) text += ", ";
  text = fmt::format("epoch {}: {}{}", epoch.epoch, text, validation);
  if (epoch.epoch == 0) return text;
  return text + fmt::format(", {:.3g} s, {} images/s", epoch["epoch_seconds"].value_or(0),
                            human_count(epoch["images_per_second"].value_or(0)));
}

std::string other_kernels_text(const std::string& now, const std::string& before) {
  return fmt::format("the checkpoint was trained with other kernels than there are now, {} instead of {}",
                     now, before.empty() ? "unknown ones" : before);
}

void log_end(spdlog::logger& log, const std::map<std::string, double>& metrics, RunStatus status,
             const std::string& reason) {
  if (metrics.contains("test_loss")) log.info("test: {}", test_text(metrics));
  if (status == RunStatus::kCompleted) return log.info("completed");
  log.log(status == RunStatus::kFailed ? spdlog::level::err : spdlog::level::warn, "{}: {}",
          to_string(status), reason);
}

}  // namespace sweep
