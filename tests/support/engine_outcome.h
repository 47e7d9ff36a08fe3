// What is left of a training in an engine, bit for bit.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/engine.h"
#include "core/network/network.h"

namespace sweep::test {

struct EngineOutcome {
  std::vector<float> parameters, gradients, buffers, outputs;
  std::vector<std::vector<float>> optimizer;
  Totals trained, evaluated;
};

/// Says which value differs first.
inline testing::AssertionResult same_bits(const EngineOutcome& a, const EngineOutcome& b) {
  const auto floats = [](const EngineOutcome& o) {
    std::vector<std::pair<std::string, const std::vector<float>*>> arrays = {{"parameters", &o.parameters},
                                                                             {"gradients", &o.gradients},
                                                                             {"buffers", &o.buffers},
                                                                             {"outputs", &o.outputs}};
    for (const auto& array : o.optimizer) arrays.emplace_back("optimizer", &array);
    return arrays;
  };
  const auto sums = [](const Totals& t) {
    return std::vector<double>{t.loss, static_cast<double>(t.correct), static_cast<double>(t.samples),
                               static_cast<double>(t.in_top)};
  };
  const auto compare = [](const std::string& name, const auto& left, const auto& right) {
    if (left == right) return testing::AssertionSuccess();
    const auto at = static_cast<std::size_t>(std::ranges::mismatch(left, right).in1 - left.begin());
    if (at >= std::min(left.size(), right.size()))
      return testing::AssertionFailure()
             << name << " have " << left.size() << " and " << right.size() << " values";
    return testing::AssertionFailure() << name << "[" << at << "]: " << left[at] << " and " << right[at];
  };
  const auto left = floats(a), right = floats(b);
  if (left.size() != right.size()) return testing::AssertionFailure() << "other arrays of the optimizer";
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (const auto result = compare(left[i].first, *left[i].second, *right[i].second); !result) return result;
  }
  if (const auto result = compare("sums of training", sums(a.trained), sums(b.trained)); !result)
    return result;
  return compare("sums of evaluation", sums(a.evaluated), sums(b.evaluated));
}

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
    part.indices = batch.indices.last(size);
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
