#include "runmanager/inference/predictor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/error.h"
#include "core/engine/stages.h"
#include "runmanager/records/recorded_config.h"
#include "runmanager/records/run_metric.h"
#include "runmanager/tensorboard/predictions.h"
#include "runmanager/training/evaluation.h"
#include "runmanager/training/prepared_run.h"

namespace sweep {
namespace {

Device device_for(const LoadedRun& run, const std::string& wanted) {
  if (!wanted.empty()) {
    const Device device = parse_device(wanted);
    if (device.type == DeviceType::kCpu) return {};  // "cpu:1" is the CPU in sweep files, too
    if (const auto reason = unavailable_reason(device))
      throw ConfigError(fmt::format("device {}: {}", device.name(), *reason));
    return device;
  }
  const std::optional<Device> device = known_device(run.record.device);  // none: it was never placed
  return device && !unavailable_reason(*device) ? *device : Device();
}

double ratio(double part, double whole) { return whole == 0 ? 0 : part / whole; }

}  // namespace

PredictionKind prediction_kind(const LoadedRun& run) {
  if (!run.samples.target_names.empty()) return PredictionKind::kNumbers;
  switch (run.config.loss.kind) {
    case LossOptions::Kind::kCrossEntropy:
      return PredictionKind::kProbabilities;
    case LossOptions::Kind::kBceWithLogits:
      // A single output tells two classes apart: softmax of 0 and the output is its sigmoid.
      return run.network->output()[0] == 1 ? PredictionKind::kProbabilities : PredictionKind::kSigmoids;
    default:
      return PredictionKind::kScores;
  }
}

std::shared_ptr<const TensorDataset> unlabelled_set(const Shape& shape, SampleArray values) {
  auto set = std::make_shared<TensorDataset>();
  set->shape = shape;
  set->samples = std::move(values);
  set->targets = std::vector<std::int32_t>(set->size());
  return set;
}

Predictor::Predictor(const LoadedRun& run, const std::string& device, int threads)
    : run_(run), kind_(prediction_kind(run)) {
  names_ = kind_ == PredictionKind::kNumbers ? run.samples.target_names : run.samples.class_names;
  const auto outputs = static_cast<std::size_t>(run.network->output()[0]);
  for (std::size_t i = names_.size(); i < outputs; ++i) names_.push_back(fmt::format("output {}", i));
  auto data = std::make_shared<Dataset>();
  data->shape = run.samples.shape;
  data->transform = run.samples.transform;
  PreparedRun prepared;
  prepared.config = &run.config;
  prepared.device = device_for(run, device);
  prepared.data = std::move(data);
  EngineOptions options = engine_options(prepared);
  options.threads = threads;
  options.accumulation_steps = 1;
  // Devices that shared the training's batches are not all here, or of another kind.
  if (parallel_unavailable_reason(*run.network, options)) options.parallel = {};
  engine_ = make_engine(*run.network, options);
  engine_->set_parameters(run.weights.parameters);
  engine_->set_buffers(run.weights.buffers);
}

std::vector<float> Predictor::predict(const Subset& samples) {
  return from_outputs(predict_samples(*engine_, samples, element_count(run_.network->output()),
                                      run_.config.batch_size, [] {}));
}

std::vector<float> Predictor::from_outputs(std::vector<float> outputs) const {
  if (kind_ == PredictionKind::kSigmoids || kind_ == PredictionKind::kNumbers) {
    const bool is_bce = run_.config.loss.kind == LossOptions::Kind::kBceWithLogits;
    return is_bce ? sigmoids_of(std::move(outputs)) : outputs;
  }
  std::vector<float> scores = class_outputs(std::move(outputs), element_count(run_.network->output()),
                                            run_.samples.class_names.size());
  return kind_ == PredictionKind::kScores ? scores : softmax_rows(std::move(scores), names_.size());
}

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
