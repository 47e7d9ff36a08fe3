// What is left of a training in an engine, bit for bit.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <tuple>
#include <vector>

#include "core/engine/engine.h"
#include "core/network/network.h"

namespace sweep::test {

struct EngineOutcome {
  std::vector<float> parameters, gradients, buffers, outputs;
  std::vector<std::vector<float>> optimizer;
  Totals trained, evaluated;

  friend bool operator==(const EngineOutcome& a, const EngineOutcome& b) {
    const auto counted = [](const Totals& t) { return std::tie(t.loss, t.correct, t.samples, t.in_top); };
    return a.parameters == b.parameters && a.gradients == b.gradients && a.buffers == b.buffers &&
           a.outputs == b.outputs && a.optimizer == b.optimizer && counted(a.trained) == counted(b.trained) &&
           counted(a.evaluated) == counted(b.evaluated);
  }
};

/// Also of an evaluation of `shown`: its outputs, and its totals twice over.
inline EngineOutcome outcome_of(Engine& engine, const Network& network, const Batch& shown) {
  EngineOutcome outcome;
  outcome.trained = engine.take_totals();
  const std::size_t outputs = shown.size() * element_count(network.output());
  outcome.outputs.resize(2 * outputs);
  engine.predict(shown, std::span(outcome.outputs).first(outputs));
  engine.evaluate_and_predict(shown, std::span(outcome.outputs).last(outputs));
  engine.evaluate(shown);
  outcome.evaluated = engine.take_totals();
  outcome.parameters = engine.parameters();
  outcome.gradients = engine.gradients();
  outcome.buffers = engine.buffers();
  for (OptimizerState& array : engine.optimizer_state()) outcome.optimizer.push_back(std::move(array.values));
  return outcome;
}

/// A step with the last `size` samples of `batch` for each of `sizes`.
inline void train_steps(Engine& engine, const Batch& batch, std::span<const std::size_t> sizes) {
  for (const std::size_t size : sizes) {
    Batch part = batch;
    part.rows = batch.rows.last(size);
    engine.train(part, 0.01);
  }
}

/// Makes `to` go on where `from` is, as a run that is resumed.
inline void hand_over(Engine& from, Engine& to) {
  EXPECT_EQ(to.kernels(), from.kernels());
  to.set_parameters(from.parameters());
  to.set_buffers(from.buffers());
  to.set_optimizer_state(from.optimizer_state(), from.step_count());
}

/// The length of the difference, as a share of the length.
inline void expect_near(const std::vector<float>& values, const std::vector<float>& expected,
                        double tolerance) {
  ASSERT_EQ(values.size(), expected.size());
  double squares = 0, differences = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto value = static_cast<double>(expected[i]), difference = static_cast<double>(values[i]) - value;
    squares += value * value;
    differences += difference * difference;
  }
  EXPECT_LE(std::sqrt(differences), tolerance * std::sqrt(squares));
}

}  // namespace sweep::test
