// Short trainings, and the ways in which devices may compute them.
#pragma once

#include "core/engine/engine.h"
#include "core/engine/stages.h"
#include "tests/support/test_device.h"
#include "tests/support/test_networks.h"

namespace sweep::test {

/// What is left of a training in an engine, bit for bit.
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

inline constexpr PipelineSchedule kGpipe = PipelineSchedule::kGpipe,
                                  kEager = PipelineSchedule::kOneForwardOneBackward;

inline EngineOptions options_with(OptimizerOptions optimizer, double clip_norm = 0,
                                  std::vector<float> class_weights = {}) {
  return {.optimizer = optimizer,
          .seed = 7,
          .loss = {.class_weights = std::move(class_weights)},
          .clip_norm = clip_norm};
}

/// Weights of ten classes that differ much, so that parts of a batch have different sums of them.
inline std::vector<float> some_weights() { return {0.1F, 5, 1, 0.5F, 2, 0, 3, 0.25F, 8, 1}; }

struct Training {
  NetworkSpec network;
  Shape input;
  EngineOptions options = options_with(AdamOptions{}, 0.5, some_weights());  // except for what a Way has
  /// The samples of each step. Some have fewer than there are parts of a batch.
  std::vector<std::size_t> batches = {26, 13, 3, 26, 1};
  std::vector<std::string> cuts = {};  // layers that stages begin with
  double learning_rate = 0.01;
};

/// How it is computed. `stages`: that begin with the last ones of Training::cuts, or with the layers that the
/// engine chooses.
struct Way {
  int threads = 1, data = 1, accumulate = 1, stages = 1, micro_batches = 1;
  PipelineSchedule schedule = kGpipe;
  std::vector<LayerPlacement> model = {};
  Device device = test::device();
};

inline std::ostream& operator<<(std::ostream& out, const Way& way) {
  out << way.device.name() << ", " << way.data << " sets of " << way.stages << ", " << way.micro_batches
      << " micro-batches (" << pipeline_schedule_names().of(way.schedule) << "), " << way.accumulate
      << " parts, " << way.threads << " threads";
  for (const LayerPlacement& placement : way.model)
    out << ", " << placement.layers << " on " << placement.device;
  return out;
}

inline Network network_of(const Training& training) { return {training.network, training.input}; }

inline EngineOptions options_of(const Training& training, const Way& way) {
  EngineOptions options = training.options;
  options.device = way.device;
  options.threads = way.threads;
  options.batch_size = std::ranges::max(training.batches);
  options.accumulation_steps = way.accumulate;
  options.parallel = {.data = way.data, .model = way.model, .pipeline = {}};
  if (way.stages == 1 && way.micro_batches == 1) return options;
  PipelineOptions& pipeline = options.parallel.pipeline.emplace();
  pipeline.micro_batches = way.micro_batches;
  pipeline.schedule = way.schedule;
  if (way.stages > 1 && !training.cuts.empty()) {
    pipeline.first_layers.assign(training.cuts.end() - (way.stages - 1), training.cuts.end());
  } else if (way.model.empty()) {
    pipeline.stages = way.stages;
  }
  return options;
}

/// Why there are too few devices for it.
inline std::optional<std::string> missing_devices(const Training& training, const Way& way) {
  return parallel_unavailable_reason(network_of(training), options_of(training, way));
}

/// An engine with the first parameters.
inline std::unique_ptr<Engine> engine_of(const Training& training, const Way& way) {
  const Network network = network_of(training);
  auto engine = make_engine(network, options_of(training, way));
  engine->set_parameters(initial_parameters(network, 3));
  return engine;
}

/// The same without a Training: on one device.
inline std::unique_ptr<Engine> engine_for(const Network& network, EngineOptions options) {
  options.device = device();
  auto engine = make_engine(network, options);
  engine->set_parameters(initial_parameters(network, 3));
  return engine;
}

inline OwnedBatch batch_of(const Training& training, std::uint64_t seed = 11) {
  const Network network = network_of(training);
  return random_batch(std::ranges::max(training.batches), element_count(training.input),
                      static_cast<std::int32_t>(element_count(network.output())), seed);
}

/// Steps [begin, end): each takes the last samples of batch_of(), with another momentum if there is one.
inline void take_steps(Engine& engine, const Training& training, std::size_t begin = 0,
                       std::size_t end = static_cast<std::size_t>(-1)) {
  const OwnedBatch all = batch_of(training);
  for (std::size_t step = begin; step < std::min(end, training.batches.size()); ++step) {
    StepValues values = training.learning_rate;
    if (has_momentum(training.options.optimizer)) values.momentum = 0.8 - 0.1 * static_cast<double>(step % 3);
    Batch batch = all.view();
    batch.indices = batch.indices.last(training.batches[step]);
    engine.train(batch, values);
  }
}

inline EngineOutcome outcome_of(Engine& engine, const Training& training) {
  return outcome_of(engine, network_of(training), batch_of(training, 12).view());
}

/// All steps on a new engine.
inline EngineOutcome train(Engine& engine, const Training& training) {
  engine.set_parameters(initial_parameters(network_of(training), 3));
  take_steps(engine, training);
  return outcome_of(engine, training);
}

/// The first step in one way, the second in the next, by an engine that goes on with what the one before has
/// trained, and all that are left in the last.
inline EngineOutcome train(const Training& training, const std::vector<Way>& ways) {
  auto engine = engine_of(training, ways[0]);
  for (std::size_t i = 1; i < ways.size(); ++i) {
    take_steps(*engine, training, i - 1, i);
    auto next = engine_of(training, ways[i]);
    hand_over(*engine, *next);
    engine = std::move(next);
  }
  take_steps(*engine, training, ways.size() - 1);
  return outcome_of(*engine, training);
}

inline EngineOutcome train(const Training& training, const Way& way) {
  return train(training, std::vector<Way>{way});
}

/// A number of samples: fewer for the stand-in, on which a step takes so much longer.
inline std::size_t sized(std::size_t samples, std::size_t on_stand_in) {
  return device_is_stand_in() ? on_stand_in : samples;
}

// Fused convolutions and a head that is cut; momentum and dropout; batch normalization and a shortcut past
// the cut; shortcuts past stages.
inline const Training kCnn{.network = deeplizard(), .input = {1, 20, 20}, .cuts = {"conv2", "fc2"}};
inline const Training kMlp{.network = with_dropout(mlp()),
                           .input = {1, 7, 7},
                           .options = options_with(SgdOptions{.momentum = 0.9}, 0.5, some_weights()),
                           .cuts = {"fc1", "out"}};
inline const Training kResidual{
    .network = with_dropout(small_residual()), .input = {3, 8, 8}, .cuts = {"block1.conv2", "block2.bn2"}};
inline const Training kShortcuts{.network = long_shortcuts(), .input = {3, 5, 6}, .cuts = {"second", "out"}};

/// What devices that share batches train: batches of several sizes, by every optimizer.
inline std::vector<Training> shared_trainings() {
  const SgdOptions momentum{.momentum = 0.9, .weight_decay = 1e-3, .nesterov = true};
  const std::vector<std::size_t> few = {sized(100, 50), sized(100, 50), 37, 5, 1};
  return {{deeplizard(), {1, 28, 28}, options_with(AdamOptions{}), {sized(300, 50), sized(333, 50), 7}},
          {deeplizard(), {1, 28, 28}, options_with(momentum, 0.1), few},
          {mlp(),
           {1, 28, 28},
           options_with(RmspropOptions{.momentum = 0.5, .centered = true}, 1),
           {sized(1000, 50), sized(500, 13), 1}},
          {with_dropout(mlp()), {1, 7, 7}, options_with(AdamOptions{}, 0, some_weights()), few},
          {unfused_cnn(), {1, 9, 9}, options_with(AdamOptions{}, 0.1), few},
          {unfused_cnn(), {1, 9, 9}, options_with(SgdOptions{}, 0, some_weights()), few},
          {with_dropout(small_residual()),
           {3, 8, 8},
           options_with(momentum, 0.5),
           {sized(400, 50), sized(400, 50), 50, 3}},
          {norm_first(), {3, 6, 6}, options_with(SgdOptions{}, 0.1, some_weights()), few}};
}

}  // namespace sweep::test
