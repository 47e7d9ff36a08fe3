#include "runmanager/tensorboard/scalar_points.h"

#include <utility>

namespace sweep {

std::vector<tbwriter::ScalarPoint> epoch_points(const EpochRecord& epoch) {
  std::vector<tbwriter::ScalarPoint> points = {
      {kEpochTag, epoch.loss},
      {"Accuracy/train", epoch.accuracy},
      {"Number Correct/train", static_cast<double>(epoch.number_correct)},
      {"Duration/epoch_seconds", epoch.epoch_seconds},
      {"Time/images_per_second", epoch.images_per_second},
      {"Time/data_wait_seconds", epoch.data_wait_seconds}};
  if (epoch.validation_loss) points.push_back({"Loss/validation", *epoch.validation_loss});
  if (epoch.validation_accuracy) points.push_back({"Accuracy/validation", *epoch.validation_accuracy});
  if (epoch.validation_number_correct) {
    points.push_back({"Number Correct/validation", static_cast<double>(*epoch.validation_number_correct)});
  }
  if (epoch.device_seconds) points.push_back({"Time/device_seconds", *epoch.device_seconds});
  return points;
}

std::vector<tbwriter::ScalarPoint> metric_points(const std::map<std::string, double>& metrics) {
  constexpr std::pair<const char*, const char*> kTags[] = {{"test_loss", "Loss/test"},
                                                           {"test_accuracy", "Accuracy/test"}};
  std::vector<tbwriter::ScalarPoint> points;
  for (const auto& [name, tag] : kTags) {
    if (const auto metric = metrics.find(name); metric != metrics.end())
      points.push_back({tag, metric->second});
  }
  return points;
}

}  // namespace sweep
