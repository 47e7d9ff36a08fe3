// Engines on the device under test, and what a short training leaves in one.
#pragma once

#include <memory>
#include <vector>

#include "core/engine/engine.h"
#include "tests/support/batch.h"
#include "tests/support/test_device.h"
#include "tests/support/test_networks.h"

namespace sweep::test {

/// An engine with the initial parameters of seed 3.
inline std::unique_ptr<Engine> engine_for(const Network& network, std::size_t batch_size, int threads = 1,
                                          OptimizerOptions optimizer = AdamOptions{}) {
  EngineOptions options{.device = device()};
  options.threads = threads;
  options.batch_size = batch_size;
  options.optimizer = optimizer;
  auto engine = make_engine(network, options);
  engine->set_parameters(initial_parameters(network, 3));
  return engine;
}

struct Outcome {
  std::vector<float> parameters, gradients;
  Totals totals;
};

/// Three steps of Adam on random images, always the same ones.
inline Outcome train_three_steps(std::size_t images, int threads,
                                 const Network& network = Network(deeplizard(), {1, 28, 28})) {
  const auto engine = engine_for(network, images, threads);
  const OwnedBatch batch = random_batch(images, element_count(network.input()), 10, 11);
  for (int step = 0; step < 3; ++step) engine->train(batch.view(), 0.01);
  return {engine->parameters(), engine->gradients(), engine->take_totals()};
}

}  // namespace sweep::test
