// Short trainings whose bits do not depend on who computes them.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/engine/engine.h"
#include "tests/support/batch.h"
#include "tests/support/test_networks.h"

namespace sweep::test {

struct Training {
  std::string name;
  NetworkSpec network;
  Shape input;
  OptimizerOptions optimizer = SgdOptions{};
  double clip_norm = 0;
  int accumulate = 1;
  std::vector<std::size_t> batches = {100, 100, 37};  // the samples of each
};

inline std::vector<Training> trainings() {
  const SgdOptions momentum{.momentum = 0.9, .weight_decay = 1e-3, .nesterov = true};
  const RmspropOptions rmsprop{.momentum = 0.5, .centered = true};
  return {
      {"cnn", deeplizard(), {1, 28, 28}, AdamOptions{}, 0, 1, {300, 333, 7}},
      {"cnn_clipped", deeplizard(), {1, 28, 28}, momentum, 0.1, 1, {100, 100, 37}},
      {"cnn_accumulated", deeplizard(), {1, 28, 28}, AdamOptions{}, 0, 3, {300, 20}},
      {"mlp", mlp(), {1, 28, 28}, rmsprop, 1, 1, {1000, 1000, 500, 1}},
      {"residual", with_dropout(small_residual()), {3, 8, 8}, momentum, 0.5, 1, {400, 400, 50, 3}},
      {"residual_accumulated",
       with_dropout(small_residual()),
       {3, 8, 8},
       AdamOptions{},
       0,
       4,
       {400, 400, 50, 3}},
  };
}

struct TrainedState {
  std::vector<float> parameters, buffers, gradients, outputs;
  std::vector<std::vector<float>> state;
  std::vector<double> totals;
  friend bool operator==(const TrainedState&, const TrainedState&) = default;
};

inline EngineOptions options_of(const Training& training, int data, int threads = 1) {
  EngineOptions options;
  options.threads = threads;
  options.batch_size = *std::max_element(training.batches.begin(), training.batches.end());
  options.optimizer = training.optimizer;
  options.clip_norm = training.clip_norm;
  options.seed = 5;
  options.parallel.data = data;
  options.accumulation_steps = training.accumulate;
  return options;
}

inline TrainedState state_of(Engine& engine, const Batch& shown) {
  TrainedState result{engine.parameters(), engine.buffers(), engine.gradients(), {}, {}, {}};
  for (const OptimizerState& array : engine.optimizer_state()) result.state.push_back(array.values);
  const auto add = [&](const Totals& totals) {
    result.totals.insert(result.totals.end(), {totals.loss, static_cast<double>(totals.correct),
                                               static_cast<double>(totals.samples)});
  };
  add(engine.take_totals());
  engine.evaluate(shown);
  add(engine.take_totals());
  result.outputs.resize(shown.size() * 10);
  engine.predict(shown, result.outputs);
  std::vector<float> again(result.outputs.size());
  engine.evaluate_and_predict(shown, again);
  add(engine.take_totals());
  if (again != result.outputs) result.outputs.clear();
  return result;
}

/// Trains batches [begin, end) of `training`, `engine` being in the state before them.
inline void train_batches(Engine& engine, const Training& training, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) {
    const OwnedBatch batch = random_batch(training.batches[i], element_count(training.input), 10, 11 + i);
    engine.set_momentum(0.8 - 0.1 * static_cast<double>(i % 3));
    engine.train(batch.view(), 0.01);
  }
}

/// The whole of it.
inline TrainedState train(const Training& training, Engine& engine, const Network& network) {
  engine.set_parameters(initial_parameters(network, 3));
  train_batches(engine, training, 0, training.batches.size());
  const OwnedBatch shown = random_batch(training.batches.front(), element_count(training.input), 10, 4);
  return state_of(engine, shown.view());
}

}  // namespace sweep::test
