// Passes over a set of samples that do not train: evaluation, predictions, profile.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "core/data/tensor_dataset.h"
#include "core/engine/engine.h"

namespace sweep {

/// Loss and correct predictions, summed over `samples`. With `class_weights`, which may be empty, the losses
/// are weighted over all of them, and their sum is that of the weighted mean. `after_batch` is called after
/// each batch and ends the pass by throwing. `outputs`, if not null, gets those of the network before
/// softmax, [samples.count, columns] row-major; it has this size already.
Totals evaluate_samples(Engine& engine, const Subset& samples, std::size_t batch_size,
                        std::span<const float> class_weights, const std::function<void()>& after_batch,
                        std::vector<float>* outputs = nullptr);

/// The outputs alone, for a pass that measures nothing.
std::vector<float> predict_samples(Engine& engine, const Subset& samples, std::size_t columns,
                                   std::size_t batch_size, const std::function<void()>& after_batch);

/// `outputs` of a network for `classes` classes, `columns` per sample, with an output per class at least: of
/// a single output for two classes, 0 and the output, of which softmax makes the sigmoid of the output.
std::vector<float> class_outputs(std::vector<float> outputs, std::size_t columns, std::size_t classes);

}  // namespace sweep
