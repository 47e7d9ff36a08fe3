#include "runmanager/training/evaluation.h"

#include <algorithm>
#include <span>
#include <utility>

#include "core/data/data_loader.h"

namespace sweep {
namespace {

// Evaluates batch after batch. With weights of classes, an engine's loss is the mean of each batch weighted
// by itself: here they become the mean weighted over all samples, whatever the size of the batches.
class Evaluator {
 public:
  Evaluator(Engine& engine, std::span<const float> class_weights)
      : engine_(engine), class_weights_(class_weights) {}

  // After the engine has evaluated `batch`.
  void add(const Batch& batch) {
    if (class_weights_.empty()) return;
    double weight = 0;
    for (const std::uint32_t row : batch.indices)
      weight += static_cast<double>(class_weights_[static_cast<std::size_t>(batch.labels()[row])]);
    Totals totals = engine_.take_totals();
    totals.loss *= weight / static_cast<double>(batch.size());
    totals_ += totals;
    weight_ += weight;
  }

  Totals take_totals() {
    if (class_weights_.empty() || weight_ == 0) return engine_.take_totals();
    totals_.loss *= static_cast<double>(totals_.samples) / weight_;
    return totals_;
  }

 private:
  Engine& engine_;
  const std::span<const float> class_weights_;
  Totals totals_;
  double weight_ = 0;
};

// Calls predict(batch, rows) for every batch, with the rows of outputs that are the batch's.
template <typename Predict>
std::vector<float> outputs_of(const Subset& samples, std::size_t classes, std::size_t batch_size,
                              const std::function<void()>& after_batch, const Predict& predict) {
  std::vector<float> outputs(samples.count * classes);
  std::size_t done = 0;
  DataLoader loader(samples, {.batch_size = batch_size});
  loader.begin_epoch(0);
  while (const Batch* batch = loader.next()) {
    predict(*batch, std::span(outputs).subspan(done * classes, batch->size() * classes));
    done += batch->size();
    after_batch();
  }
  return outputs;
}

}  // namespace

Totals evaluate_samples(Engine& engine, const Subset& samples, std::size_t batch_size,
                        std::span<const float> class_weights, const std::function<void()>& after_batch) {
  Evaluator evaluator(engine, class_weights);
  DataLoader loader(samples, {.batch_size = batch_size});
  loader.begin_epoch(0);
  while (const Batch* batch = loader.next()) {
    engine.evaluate(*batch);
    evaluator.add(*batch);
    after_batch();
  }
  return evaluator.take_totals();
}

Totals evaluate_random_batches(Engine& engine, const Subset& samples, std::size_t batch_size, int count,
                               RandomStream random) {
  const std::size_t size = std::min(batch_size, samples.count);
  const auto places = static_cast<std::uint32_t>(samples.count - size + 1);
  Totals totals;
  for (int i = 0; i < count; ++i)
    totals += evaluate_samples(engine, samples.part(random.below(places), size), size, {}, [] {});
  return totals;
}

Evaluation evaluate_with_outputs(Engine& engine, const Subset& samples, std::size_t classes,
                                 std::size_t batch_size, std::span<const float> class_weights,
                                 const std::function<void()>& after_batch) {
  Evaluator evaluator(engine, class_weights);
  std::vector<float> outputs =
      outputs_of(samples, classes, batch_size, after_batch, [&](const Batch& batch, std::span<float> rows) {
        engine.evaluate(batch, rows);
        evaluator.add(batch);
      });
  return {evaluator.take_totals(), std::move(outputs)};
}

std::vector<float> predict_samples(Engine& engine, const Subset& samples, std::size_t classes,
                                   std::size_t batch_size, const std::function<void()>& after_batch) {
  return outputs_of(samples, classes, batch_size, after_batch,
                    [&engine](const Batch& batch, std::span<float> rows) { engine.predict(batch, rows); });
}

std::pair<Subset, std::string_view> shown_samples(const Dataset& data) {
  if (data.validation.count > 0) return {data.validation, "validation"};
  if (data.test.count > 0) return {data.test, "test"};
  return {data.train, "training"};
}

std::vector<float> class_outputs(std::vector<float> outputs, std::size_t columns, std::size_t classes) {
  if (columns > 1 || classes != 2) return outputs;
  std::vector<float> both;
  both.reserve(2 * outputs.size());
  for (const float output : outputs) both.insert(both.end(), {0.0f, output});
  return both;
}

std::size_t profiled_samples(const Device& device, std::size_t batch_size) {
  // The CPU engine works in blocks of 16 samples; more than two of them on one thread show nothing new. On a
  // GPU a small batch would measure kernel launches instead of the layers.
  constexpr std::size_t kOnCpu = 32, kOnCuda = 1000;
  return std::min(batch_size, device.type == DeviceType::kCpu ? kOnCpu : kOnCuda);
}

StepProfile profile_step(Engine& engine, const Device& device, const Subset& samples,
                         std::size_t batch_size) {
  DataLoader loader(samples, {.batch_size = profiled_samples(device, batch_size)});
  loader.begin_epoch(0);
  const Batch* batch = loader.next();
  if (batch == nullptr) return {};
  return {.layers = engine.profile(*batch), .samples = static_cast<std::int64_t>(batch->size())};
}

}  // namespace sweep
