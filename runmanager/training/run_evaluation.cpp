#include "runmanager/training/run_evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "core/base/random.h"
#include "core/data/data_loader.h"
#include "core/network/loss.h"
#include "runmanager/records/run_metric.h"
#include "runmanager/training/evaluation.h"

namespace sweep {
namespace {

// The samples whose predictions a run shows, and the name of their part.
std::pair<Subset, std::string_view> shown_samples(const Dataset& data) {
  if (data.validation.count > 0) return {data.validation, "validation"};
  if (data.test.count > 0) return {data.test, "test"};
  return {data.train, "training"};
}

[[noreturn]] void throw_diverged(const TrainingPlace& place, const std::string& what) {
  throw DivergedError(
      fmt::format("diverged at epoch {}{}; try a smaller lr than {}", place.epoch, what, place.lr));
}

// Without the sign of NaN, which fmt would write.
double shown_loss(double loss) { return std::isnan(loss) ? std::abs(loss) : loss; }

void check_evaluation_loss(const Totals& totals, std::string_view part, const TrainingPlace& place) {
  if (std::isfinite(totals.loss)) return;
  throw_diverged(place, fmt::format(": the {} loss is {}", part,
                                    shown_loss(totals.loss / static_cast<double>(totals.samples))));
}

}  // namespace

void check_training_loss(const Totals& totals, const TrainingPlace& place) {
  if (std::isfinite(totals.loss)) return;
  const std::string batches = place.end - place.begin == 1
                                  ? fmt::format("batch {}", place.end)
                                  : fmt::format("one of batches {} to {}", place.begin + 1, place.end);
  throw_diverged(place, fmt::format(", {}: the loss is {}", batches, shown_loss(totals.loss)));
}

void check_weights(const Weights& weights, const TrainingPlace& place) {
  const auto is_finite = [](float value) { return std::isfinite(value); };
  const std::size_t all = weights.parameters.size() + weights.buffers.size();
  const auto count = static_cast<std::int64_t>(all) - std::ranges::count_if(weights.parameters, is_finite) -
                     std::ranges::count_if(weights.buffers, is_finite);
  if (count == 0) return;
  throw_diverged(place, fmt::format(": after its last batch {} of {} weights are not finite", count, all));
}

bool RunEvaluation::is_shown(const Subset& part) const {
  const Subset shown = shown_samples(*run_.data).first;
  return run_.config->log.predictions && has_classes() && part.count > 0 && shown.set == part.set &&
         shown.first == part.first && shown.count == part.count;
}

Totals RunEvaluation::evaluate(Engine& engine, const Subset& samples, std::string_view part,
                               const TrainingPlace& place, bool keeps_outputs) {
  report_(RunPhase{std::string(part)});
  const auto after = [this, part] {
    report_(RunPhase{std::string(part)});
    after_batch_();
  };
  const bool shows = is_shown(samples), keeps = keeps_outputs && shows;
  std::vector<float> outputs(keeps ? samples.count * element_count(run_.network->output()) : 0);
  const Totals totals = evaluate_samples(engine, samples, run_.config->batch_size,
                                         run_.config->loss.class_weights, after, keeps ? &outputs : nullptr);
  // Those that are not kept may be of an epoch that more training has followed.
  if (shows) outputs_ = keeps ? std::optional(std::move(outputs)) : std::nullopt;
  check_evaluation_loss(totals, part, place);
  return totals;
}

const EpochRecord& RunEvaluation::validate_untrained(Engine& engine, double lr) {
  const Subset& samples = run_.data->validation;
  const Totals totals = evaluate(engine, samples, "validation", {.epoch = 0, .lr = lr}, false);
  return recorder_.record_untrained(totals, target_variation(samples));
}

void RunEvaluation::validate(Engine& engine, const TrainingPlace& place, bool keeps_outputs) {
  const Subset& samples = run_.data->validation;
  if (samples.count == 0) return;
  const Totals totals = evaluate(engine, samples, "validation", place, keeps_outputs);
  recorder_.track_validation(totals, target_variation(samples));
}

std::optional<Totals> RunEvaluation::validation_batches(Engine& engine, const TrainingPlace& place,
                                                        std::int64_t step) const {
  const RunConfig& config = *run_.config;
  if (run_.data->validation.count == 0) return std::nullopt;
  const Subset& samples = run_.data->validation;
  RandomStream random(config.seed, RandomUse::kValidationBatch, static_cast<std::uint32_t>(step),
                      config.repeat);
  const std::size_t size = std::min(config.batch_size, samples.count);
  const auto places = static_cast<std::uint32_t>(samples.count - size + 1);
  Totals totals;
  for (int i = 0; i < config.log.validation_batches; ++i)
    totals += evaluate_samples(engine, samples.part(random.below(places), size), size, {}, [] {});
  check_evaluation_loss(totals, "validation", place);
  return totals;
}

void RunEvaluation::profile(Engine& engine) const {
  // The CPU engine works in blocks of 16 samples; more than two of them on one thread show nothing new. On a
  // GPU a small batch would measure kernel launches instead of the layers.
  const std::size_t most = run_.device.type == DeviceType::kCpu ? 32 : 1000;
  DataLoader loader(run_.data->train, {.batch_size = std::min(run_.config->batch_size, most)});
  loader.begin_epoch(0);
  if (const Batch* batch = loader.next())
    recorder_.track_profile(engine.profile(*batch), static_cast<std::int64_t>(batch->size()));
}

void RunEvaluation::test(Engine& engine, const TrainingPlace& place, bool keeps_outputs) {
  if (run_.data->test.count == 0) return;
  const Totals totals = evaluate(engine, run_.data->test, "test", place, keeps_outputs);
  for (const auto& [metric, value] :
       measured_metrics(totals, target_variation(run_.data->test), MetricPart::kTest))
    recorder_.track_metric(metric->key, value);
}

void RunEvaluation::predictions(Engine& engine) {
  if (!run_.config->log.predictions || !has_classes()) return;
  const auto [samples, part] = shown_samples(*run_.data);
  const std::size_t columns = element_count(run_.network->output());
  if (!outputs_) {
    outputs_ = predict_samples(engine, samples, columns, run_.config->batch_size, [this] {
      report_(RunPhase{"predictions"});
      after_batch_();
    });
  }
  const std::vector<float> outputs = class_outputs(std::move(*std::exchange(outputs_, std::nullopt)), columns,
                                                   run_.data->class_names.size());
  const bool by_sigmoid = columns > 1 && run_.config->loss.kind == LossOptions::Kind::kBceWithLogits;
  recorder_.track_predictions(samples, outputs, run_.data->class_names, part, by_sigmoid);
}

}  // namespace sweep
