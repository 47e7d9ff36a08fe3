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
  std::int64_t steps = 0;
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
  if (a.steps != b.steps) return testing::AssertionFailure() << a.steps << " and " << b.steps << " steps";
  if (const auto result = compare("sums of training", sums(a.trained), sums(b.trained)); !result)
    return result;
  return compare("sums of evaluation", sums(a.evaluated), sums(b.evaluated));
}

/// Also of an evaluation of `shown`: its outputs and totals, which have to be the same at once and apart.
inline EngineOutcome outcome_of(Engine& engine, const Network& network, const Batch& shown) {
  EngineOutcome outcome;
  outcome.trained = engine.take_totals();
  outcome.outputs.resize(shown.size() * element_count(network.output()));
  std::vector<float> together(outcome.outputs.size());
  engine.predict(shown, outcome.outputs);
  engine.evaluate(shown);
  outcome.evaluated = engine.take_totals();
  engine.evaluate(shown, together);
  const Totals totals = engine.take_totals();
  EXPECT_EQ(together, outcome.outputs);
  EXPECT_EQ(totals.loss, outcome.evaluated.loss);
  EXPECT_EQ(totals.correct, outcome.evaluated.correct);
  EXPECT_EQ(totals.samples, outcome.evaluated.samples);
  outcome.parameters = engine.parameters();
  outcome.gradients = engine.gradients();
  outcome.buffers = engine.buffers();
  outcome.steps = engine.step_count();
  for (OptimizerState& array : engine.optimizer_state()) outcome.optimizer.push_back(std::move(array.values));
  return outcome;
}

/// Makes `to` go on where `from` is, as a run that is resumed.
inline void hand_over(Engine& from, Engine& to) {
  EXPECT_EQ(to.kernels(), from.kernels());
  to.set_parameters(from.parameters());
  to.set_buffers(from.buffers());
  to.set_optimizer_state(from.optimizer_state(), from.step_count());
}

/// `tolerance`: of the length of the difference, as a share of the length.
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

/// The same of all that is left. Gradients and what is computed from few numbers may differ ten times as
/// much.
inline void expect_near(const EngineOutcome& outcome, const EngineOutcome& expected, double tolerance) {
  constexpr double kOfLosses = 1e-4;
  expect_near(outcome.parameters, expected.parameters, tolerance);
  expect_near(outcome.buffers, expected.buffers, tolerance);
  expect_near(outcome.gradients, expected.gradients, 10 * tolerance);
  expect_near(outcome.outputs, expected.outputs, 10 * tolerance);
  ASSERT_EQ(outcome.optimizer.size(), expected.optimizer.size());
  for (std::size_t i = 0; i < expected.optimizer.size(); ++i)
    expect_near(outcome.optimizer[i], expected.optimizer[i], 10 * tolerance);
  EXPECT_NEAR(outcome.trained.loss / expected.trained.loss, 1, kOfLosses);
  EXPECT_NEAR(outcome.evaluated.loss / expected.evaluated.loss, 1, kOfLosses);
  EXPECT_LE(std::abs(outcome.trained.correct - expected.trained.correct), 1);
  EXPECT_EQ(outcome.trained.samples, expected.trained.samples);
  EXPECT_EQ(outcome.evaluated.samples, expected.evaluated.samples);
}

}  // namespace sweep::test
