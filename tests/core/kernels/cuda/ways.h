// Networks and the ways in which several devices train them, for tests.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/engine/engine.h"
#include "tests/support/batch.h"
#include "tests/support/engine_outcome.h"
#include "tests/support/test_networks.h"

namespace sweep::test {

inline EngineOptions default_options() {
  EngineOptions options{.device = {DeviceType::kCuda, 0}};
  options.optimizer = AdamOptions{};
  options.clip_norm = 0.5;
  options.seed = 7;
  options.threads = 1;  // of the CPU
  options.loss.class_weights = {0.1F, 5, 1, 0.5F, 2, 0.5F, 3, 0.25F, 8, 1};
  return options;
}

struct Training {
  NetworkSpec network;
  Shape input;
  std::vector<std::string> cuts = {};  // layers that stages begin with
  EngineOptions options = default_options();
};

// How a network is trained. stages: that begin with the last ones of Training::cuts.
struct Way {
  int data = 1, accumulate = 1, stages = 1, micro_batches = 1;
  PipelineSchedule schedule = PipelineSchedule::kGpipe;
};
inline constexpr PipelineSchedule kEager = PipelineSchedule::kOneForwardOneBackward;

inline std::string text(const Training& training, const Way& way) {
  return training.network.name + ": " + std::to_string(way.data) + " sets of " + std::to_string(way.stages) +
         ", " + std::to_string(way.micro_batches) + " micro-batches, " + std::to_string(way.accumulate) +
         " turns, " + pipeline_schedule_names().of(way.schedule);
}

inline Training cut_before(Training training, std::vector<std::string> cuts) {
  training.cuts = std::move(cuts);
  return training;
}

inline Network network_of(const Training& training) { return {training.network, training.input}; }

// Batches of which some have fewer samples than there are shares and turns.
inline std::vector<std::size_t> sizes_of(const Way& way) {
  if (way.data * way.accumulate == 1) return {11, 4, 1, 11};
  return {26, 13, 3, 26, 1};
}

inline std::unique_ptr<Engine> engine_of(const Training& training, const Way& way) {
  EngineOptions options = training.options;
  options.batch_size = sizes_of(way)[0];
  options.accumulation_steps = way.accumulate;
  options.parallel.data = way.data;
  if (way.stages > 1) {
    options.parallel.pipeline =
        PipelineOptions{.stages = 0,
                        .first_layers = {training.cuts.end() - (way.stages - 1), training.cuts.end()},
                        .micro_batches = way.micro_batches,
                        .schedule = way.schedule};
  }
  auto engine = make_engine(network_of(training), options);
  engine->set_parameters(initial_parameters(network_of(training), 3));
  return engine;
}

inline OwnedBatch batch_of(const Training& training, std::size_t samples, std::uint64_t seed = 11) {
  return random_batch(samples, element_count(training.input), 10, seed);
}

inline void take_steps(Engine& engine, const Training& training, const Way& way) {
  const std::vector<std::size_t> sizes = sizes_of(way);
  train_steps(engine, batch_of(training, sizes[0]).view(), sizes);
}

inline EngineOutcome outcome_of(Engine& engine, const Training& training, const Way& way) {
  return outcome_of(engine, network_of(training), batch_of(training, sizes_of(way)[0], 12).view());
}

inline EngineOutcome train(const Training& training, const Way& way) {
  const auto engine = engine_of(training, way);
  take_steps(*engine, training, way);
  return outcome_of(*engine, training, way);
}

inline void expect_the_bits_of(const Way& expected, const std::vector<Way>& ways,
                               const std::vector<Training>& trainings) {
  for (const Training& training : trainings) {
    const EngineOutcome one = train(training, expected);
    for (const Way& way : ways) EXPECT_TRUE(same_bits(one, train(training, way))) << text(training, way);
  }
}

// A shortcut past two stages, one that begins at the input, and a network whose first layer has no
// parameters.
inline NetworkSpec long_shortcuts() {
  const auto same = [](std::string name) {
    LayerSpec spec = conv(std::move(name), 3, 3);
    spec.arguments["padding"] = std::int64_t{1};
    return spec;
  };
  LayerSpec first{"first", "residual"}, second{"second", "residual"};
  first.layers = {same("a"), {"tanh", "tanh"}, same("b"), {"norm", "batch_norm2d"}};
  second.layers = {same("c"), {"leaky", "leaky_relu"}, same("d"), relu("relu"), same("e")};
  return {"shortcuts",
          {first,
           second,
           {"dropout", "dropout", {{"p", 0.2}}},
           flatten("flatten"),
           linear("fc", 20),
           {"sigmoid", "sigmoid"},
           linear("out", 10)}};
}

// Fused convolutions and a head that is cut; momentum and dropout; a shortcut past the cut; batch
// normalization.
inline const Training kCnn{deeplizard(), {1, 20, 20}, {"conv2", "fc2"}};
inline Training small_mlp() {
  Training training{with_dropout(mlp()), {1, 7, 7}, {"fc1", "out"}};
  training.options.optimizer = SgdOptions{.momentum = 0.9};
  return training;
}
inline const Training kResidual{with_dropout(small_residual()), {3, 8, 8}, {"block1.conv2", "block2.bn2"}};
inline const Training kShortcuts{long_shortcuts(), {3, 5, 6}, {"second", "out"}};
inline std::vector<Training> trainings() { return {kCnn, small_mlp(), kResidual}; }

}  // namespace sweep::test
