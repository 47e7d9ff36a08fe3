#include "runmanager/training/evaluation.h"

#include <span>

#include "core/data/data_loader.h"

namespace sweep {
namespace {

// Calls pass(batch, place) for every batch; the place is that of its first sample.
template <typename Pass>
void for_each_batch(const Subset& samples, std::size_t batch_size, const std::function<void()>& after_batch,
                    const Pass& pass) {
  std::size_t place = 0;
  DataLoader loader(samples, {.batch_size = batch_size});
  loader.begin_epoch(0);
  while (const Batch* batch = loader.next()) {
    pass(*batch, place);
    place += batch->size();
    after_batch();
  }
}

}  // namespace

// With weights of classes, an engine's loss is the mean of each batch weighted by itself: here they become
// the mean weighted over all samples, whatever the size of the batches.
Totals evaluate_samples(Engine& engine, const Subset& samples, std::size_t batch_size,
                        std::span<const float> class_weights, const std::function<void()>& after_batch,
                        std::vector<float>* outputs) {
  const std::size_t columns = outputs == nullptr || samples.count == 0 ? 0 : outputs->size() / samples.count;
  Totals weighted;
  double all_weights = 0;
  for_each_batch(samples, batch_size, after_batch, [&](const Batch& batch, std::size_t place) {
    engine.evaluate(batch, outputs == nullptr
                               ? std::span<float>()
                               : std::span(*outputs).subspan(place * columns, batch.size() * columns));
    if (class_weights.empty()) return;
    double weight = 0;
    for (const std::uint32_t row : batch.indices)
      weight += static_cast<double>(class_weights[static_cast<std::size_t>(batch.labels()[row])]);
    Totals totals = engine.take_totals();
    if (weight > 0) totals.loss *= weight / static_cast<double>(batch.size());
    weighted += totals;
    all_weights += weight;
  });
  if (class_weights.empty()) return engine.take_totals();
  if (all_weights > 0) weighted.loss *= static_cast<double>(weighted.samples) / all_weights;
  return weighted;
}

std::vector<float> predict_samples(Engine& engine, const Subset& samples, std::size_t columns,
                                   std::size_t batch_size, const std::function<void()>& after_batch) {
  std::vector<float> outputs(samples.count * columns);
  for_each_batch(samples, batch_size, after_batch, [&](const Batch& batch, std::size_t place) {
    engine.predict(batch, std::span(outputs).subspan(place * columns, batch.size() * columns));
  });
  return outputs;
}

std::vector<float> class_outputs(std::vector<float> outputs, std::size_t columns, std::size_t classes) {
  if (columns > 1 || classes != 2) return outputs;
  std::vector<float> both;
  both.reserve(2 * outputs.size());
  for (const float output : outputs) both.insert(both.end(), {0.0f, output});
  return both;
}

}  // namespace sweep
