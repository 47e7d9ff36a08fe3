// Mean and deviation of the channels of samples, and filling in their missing values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/data/tensor_dataset.h"

namespace sweep {

/// One value per feature for samples of [features], otherwise one per index of the first extent.
struct ChannelStatistics {
  std::vector<double> mean, deviation;  // [channels]; the deviation divides by the count
};

/// The statistics of samples `rows` of `set`, of floats or of byte / 255. NaN, a missing value, is left out;
/// the mean of a channel without any value is NaN. Those of bytes are counted first, and so do not
/// depend on the order of the rows.
ChannelStatistics channel_statistics(const TensorDataset& set, std::span<const std::uint32_t> rows);

/// Replaces each NaN among `values`, samples of `shape`, by the mean of its channel. `means` must come from
/// the samples that a network is trained on, so that no other samples leak into it.
void fill_missing(std::vector<float>& values, const Shape& shape, std::span<const float> means);

}  // namespace sweep
