#include "runmanager/tensorboard/scalar_points.h"

#include <utility>

namespace sweep {

std::vector<tbwriter::ScalarPoint> epoch_points(const EpochRecord& epoch) {
  std::vector<tbwriter::ScalarPoint> points;
  if (epoch.epoch > 0) {
    points = {{kEpochTag, epoch.loss},
              {"Duration/epoch_seconds", epoch.epoch_seconds},
              {"Time/images_per_second", epoch.images_per_second},
              {"Time/data_wait_seconds", epoch.data_wait_seconds}};
  }
  if (epoch.accuracy) points.push_back({"Accuracy/train", *epoch.accuracy});
  if (epoch.number_correct)
    points.push_back({"Number Correct/train", static_cast<double>(*epoch.number_correct)});
  if (epoch.validation_loss) points.push_back({"Loss/validation", *epoch.validation_loss});
  if (epoch.validation_accuracy) points.push_back({"Accuracy/validation", *epoch.validation_accuracy});
  if (epoch.validation_number_correct) {
    points.push_back({"Number Correct/validation", static_cast<double>(*epoch.validation_number_correct)});
  }
  for (std::size_t i = 0; i < kMeasures.size(); ++i) {
    if (epoch.measures[i]) points.push_back({kMeasures[i].train_tag, *epoch.measures[i]});
    if (epoch.validation_measures[i])
      points.push_back({kMeasures[i].validation_tag, *epoch.validation_measures[i]});
  }
  if (epoch.device_seconds) points.push_back({"Time/device_seconds", *epoch.device_seconds});
  if (epoch.communication_seconds)
    points.push_back({"Time/communication_seconds", *epoch.communication_seconds});
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
  for (const Measure& measure : kMeasures) {
    const auto metric = metrics.find("test_" + std::string(measure.key));
    if (metric != metrics.end()) points.push_back({measure.test_tag, metric->second});
  }
  return points;
}

}  // namespace sweep
