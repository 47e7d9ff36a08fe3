#include "runmanager/training/log_lines.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>

#include "runmanager/terminal/table.h"

namespace sweep {
namespace {

// ", accuracy 0.85", with every measure that there is.
std::string measures_text(const std::optional<double>& accuracy, const Measures& measures) {
  std::string text = accuracy ? fmt::format(", accuracy {:.6g}", *accuracy) : "";
  for (std::size_t i = 0; i < kMeasures.size(); ++i) {
    if (measures[i]) text += fmt::format(", {} {:.6g}", kMeasures[i].title, *measures[i]);
  }
  return text;
}

// "loss 0.5, accuracy 0.85".
std::string test_text(const std::map<std::string, double>& metrics) {
  constexpr std::string_view kTest = "test_";
  const auto loss = metrics.find("test_loss");
  std::string text = loss == metrics.end() ? "" : fmt::format("loss {:.6g}", loss->second);
  for (const auto& [name, value] : metrics) {
    if (name.starts_with(kTest) && name != "test_loss")
      text += fmt::format(", {} {:.6g}", name.substr(kTest.size()), value);
  }
  return text;
}

}  // namespace

std::string begin_text(const PreparedRun& run, std::size_t batches) {
  return fmt::format("run {} on {}: {} training samples in {} batches, {} parameters", run.config->name,
                     run.device.name(), run.data->train.count, batches, run.network->parameter_count());
}

std::string epoch_text(const EpochRecord& epoch) {
  const bool trained = epoch.epoch > 0;
  std::string text = fmt::format("epoch {}: ", epoch.epoch);
  if (trained)
    text += fmt::format("loss {:.6g}{}", epoch.loss, measures_text(epoch.accuracy, epoch.measures));
  if (epoch.validation_loss) {
    text += fmt::format("{}validation loss {:.6g}{}", trained ? ", " : "", *epoch.validation_loss,
                        measures_text(epoch.validation_accuracy, epoch.validation_measures));
  }
  if (!trained) return text;
  return text +
         fmt::format(", {:.3g} s, {} images/s", epoch.epoch_seconds, human_count(epoch.images_per_second));
}

std::string other_kernels_text(const std::string& now, const std::string& before) {
  return fmt::format("the checkpoint was trained with other kernels than there are now, {} instead of {}",
                     now, before.empty() ? "unknown ones" : before);
}

void log_end(LogFile& log, const std::map<std::string, double>& metrics, RunStatus status,
             const std::string& reason) {
  if (metrics.contains("test_loss")) log.info("test: {}", test_text(metrics));
  if (status == RunStatus::kCompleted) return log.info("completed");
  if (status == RunStatus::kFailed) return log.error("{}: {}", to_string(status), reason);
  log.warn("{}: {}", to_string(status), reason);
}

}  // namespace sweep
