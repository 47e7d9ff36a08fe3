// Batches of random samples.
#pragma once

#include <memory>

#include "core/base/random.h"
#include "core/data/dataset.h"
#include "tests/support/reference_data.h"

namespace sweep::test {

/// `images` samples of `pixels` bytes each, in order.
inline OwnedBatch random_batch(std::size_t images, std::size_t pixels, std::int32_t classes,
                               std::uint64_t seed) {
  RandomStream random(seed, RandomUse::kShuffle);
  OwnedBatch batch;
  for (std::size_t i = 0; i < images * pixels; ++i)
    batch.pixels.push_back(static_cast<std::uint8_t>(random.next_u32()));
  for (std::size_t i = 0; i < images; ++i) {
    batch.labels.push_back(static_cast<std::int32_t>(random.below(static_cast<std::uint32_t>(classes))));
    batch.indices.push_back(static_cast<std::uint32_t>(i));
  }
  return batch;
}

/// The same samples as a data set, each of `shape`.
inline std::shared_ptr<const TensorDataset> random_set(std::size_t images, const Shape& shape,
                                                       std::int32_t classes, std::uint64_t seed) {
  OwnedBatch batch = random_batch(images, element_count(shape), classes, seed);
  return std::make_shared<const TensorDataset>(
      TensorDataset{shape, std::move(batch.pixels), std::move(batch.labels)});
}

}  // namespace sweep::test
