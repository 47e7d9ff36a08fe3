#include "runmanager/inference/predictor.h"

#include <fmt/format.h>

#include <utility>

#include "core/base/error.h"
#include "core/engine/stages.h"
#include "runmanager/records/recorded_config.h"
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

}  // namespace sweep
