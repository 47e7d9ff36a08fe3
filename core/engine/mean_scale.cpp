#include "core/engine/mean_scale.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sweep {

MeanScale mean_scale(const Batch& batch, const LossOptions& loss) {
  const std::vector<float>& weights = loss.class_weights;
  const auto count = static_cast<double>(batch.size());
  if (weights.empty() || batch.size() == 0) return {1.0f / static_cast<float>(batch.size()), 1};
  const std::span<const std::int32_t> labels = batch.labels();
  double sum = 0;
  for (const std::uint32_t row : batch.indices) sum += weights[static_cast<std::size_t>(labels[row])];
  if (sum == 0) return {0, 0};
  return {static_cast<float>(1 / sum), count / sum};
}

}  // namespace sweep
