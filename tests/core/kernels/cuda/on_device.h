// A short training on the device under test: a GPU, or the stand-in.
#pragma once

#include "core/engine/engine.h"
#include "core/network/network.h"
#include "tests/support/batch.h"
#include "tests/support/engine_outcome.h"
#include "tests/support/test_device.h"

namespace sweep::test {

inline EngineOptions on_device() {
  EngineOptions options{.device = device(), .batch_size = 40};
  options.optimizer = AdamOptions{};
  options.clip_norm = 0.5;
  return options;
}

/// Whole batches, and one of fewer samples than there are parts.
inline EngineOutcome train_on_device(Engine& engine, const Network& network) {
  constexpr std::size_t kSizes[] = {40, 40, 7, 40};
  engine.set_parameters(initial_parameters(network, 3));
  const OwnedBatch owned = random_batch(40, element_count(network.input()), 10, 11);
  train_steps(engine, owned.view(), kSizes);
  return outcome_of(engine, network, owned.view());
}

}  // namespace sweep::test
