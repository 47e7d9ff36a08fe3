#include "runmanager/inference/run_scores.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/error.h"
#include "runmanager/tensorboard/predictions.h"
#include "runmanager/training/evaluation.h"

namespace sweep {
namespace {

double ratio(double part, double whole) { return whole == 0 ? 0 : part / whole; }

}  // namespace

std::vector<ClassScores> class_scores(std::span<const std::int64_t> counts, std::size_t classes) {
  std::vector<ClassScores> scores(classes);
  for (std::size_t label = 0; label < classes; ++label) {
    for (std::size_t predicted = 0; predicted < classes; ++predicted) {
      const std::int64_t count = counts[label * classes + predicted];
      scores[label].samples += count;
      scores[predicted].predicted += count;
      if (label == predicted) scores[label].right = count;
    }
  }
  for (ClassScores& score : scores) {
    const auto right = static_cast<double>(score.right);
    score.precision = ratio(right, static_cast<double>(score.predicted));
    score.recall = ratio(right, static_cast<double>(score.samples));
    score.f1 = ratio(2 * right, static_cast<double>(score.predicted + score.samples));
  }
  return scores;
}

ClassScores mean_scores(std::span<const ClassScores> classes) {
  ClassScores mean;
  double counted = 0;
  for (const ClassScores& score : classes) {
    if (score.samples == 0 && score.predicted == 0) continue;
    ++counted;
    mean.samples += score.samples;
    mean.predicted += score.predicted;
    mean.right += score.right;
    mean.precision += score.precision;
    mean.recall += score.recall;
    mean.f1 += score.f1;
  }
  for (double* value : {&mean.precision, &mean.recall, &mean.f1}) *value = ratio(*value, counted);
  return mean;
}

std::vector<Confusion> most_frequent_mistakes(std::span<const std::int64_t> counts, std::size_t classes,
                                              std::size_t limit) {
  std::vector<Confusion> mistakes;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0 && i / classes != i % classes)
      mistakes.push_back({i / classes, i % classes, counts[i]});
  }
  std::ranges::stable_sort(mistakes, std::ranges::greater(), &Confusion::count);
  if (mistakes.size() > limit) mistakes.resize(limit);
  return mistakes;
}

std::vector<TargetScores> target_scores(std::span<const float> predictions, std::span<const float> targets,
                                        std::size_t columns) {
  const std::size_t samples = targets.size() / columns;
  const auto count = static_cast<double>(samples);
  std::vector<TargetScores> scores(columns);
  for (std::size_t t = 0; t < columns; ++t) {
    double sum = 0, absolute = 0, squares = 0, variation = 0;
    for (std::size_t i = t; i < targets.size(); i += columns) sum += static_cast<double>(targets[i]);
    for (std::size_t i = t; i < targets.size(); i += columns) {
      const double target = static_cast<double>(targets[i]), deviation = target - sum / count;
      const double error = static_cast<double>(predictions[i]) - target;
      absolute += std::abs(error);
      squares += error * error;
      variation += deviation * deviation;
    }
    scores[t] = {.mae = absolute / count, .rmse = std::sqrt(squares / count), .r2 = {}};
    if (variation > 0) scores[t].r2 = 1 - squares / variation;
  }
  return scores;
}

RunScores score_samples(const LoadedRun& run, Predictor& predictor, const Subset& samples,
                        std::string_view part) {
  std::vector<float> outputs(samples.count * element_count(run.network->output()));
  const Totals totals = evaluate_samples(
      predictor.engine(), samples, run.config.batch_size, run.config.loss.class_weights, [] {}, &outputs);
  RunScores scores;
  scores.part = part;
  scores.samples = totals.samples;
  scores.metrics = measured_metrics(totals, target_variation(samples), MetricPart::kTraining);
  scores.names = predictor.names();
  const std::size_t columns = scores.names.size();
  const std::vector<float> values = predictor.from_outputs(std::move(outputs));
  if (predictor.kind() == PredictionKind::kNumbers) {
    scores.targets = target_scores(values, samples.numbers(), columns);
    return scores;
  }
  scores.confusion = confusion_matrix(values, samples.labels(), columns);
  scores.classes = class_scores(scores.confusion, columns);
  return scores;
}

Subset part_of(const Dataset& data, std::string& part) {
  const std::pair<const char*, const Subset*> parts[] = {
      {"test", &data.test}, {"validation", &data.validation}, {"train", &data.train}};
  for (const auto& [name, samples] : parts) {
    if (part.empty() ? samples->count == 0 : part != name) continue;
    part = name;
    if (samples->count > 0) return *samples;
    throw ConfigError(fmt::format("--part {}: the run's data has no {} samples", part, part));
  }
  throw ConfigError(fmt::format("--part: got \"{}\", want train, validation or test", part));
}

}  // namespace sweep
