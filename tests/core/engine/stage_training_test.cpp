// Training a network whose layers are on several devices: the bits of one device.
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "tests/core/engine/engine_for.h"
#include "tests/support/message_of.h"

namespace sweep {
namespace {

struct State {
  std::vector<float> parameters, gradients, buffers;
  std::vector<std::vector<float>> optimizer;
  double loss = 0;
  std::int64_t correct = 0, in_top = 0;
  friend bool operator==(const State&, const State&) = default;
};

struct Training {
  NetworkSpec network;
  Shape input;
  std::size_t batch_size;
};

NetworkSpec with_dropout(NetworkSpec network) {
  network.layers.insert(network.layers.end() - 1, {"dropout", "dropout", {{"p", 0.3}}});
  return network;
}

std::vector<Training> trainings() {
  return {{test::deeplizard(), {1, 28, 28}, 333},
          {test::deeplizard(), {1, 28, 28}, 16},
          {with_dropout(test::mlp()), {1, 28, 28}, 200},
          {with_dropout(test::small_residual()), {3, 8, 8}, 150}};
}

// Two steps on a whole batch and one on a short one, then an evaluation.
State train(const Training& training, const ParallelOptions& parallel, int threads) {
  const Network network(training.network, training.input);
  EngineOptions options{.device = {}, .threads = threads, .batch_size = training.batch_size};
  options.optimizer = AdamOptions{};
  options.clip_norm = 0.5;
  options.seed = 7;
  options.parallel = parallel;
  const auto engine = make_engine(network, options);
  engine->set_parameters(initial_parameters(network, 3));
  const test::OwnedBatch batch =
      test::random_batch(training.batch_size, element_count(network.input()), 10, 11);
  Batch shorter = batch.view();
  shorter.rows = shorter.rows.first(training.batch_size / 3 + 1);
  engine->train(batch.view(), 0.01);
  engine->train(shorter, 0.01);
  engine->train(batch.view(), 0.01);
  engine->evaluate(batch.view());
  const Totals totals = engine->take_totals();
  State state{engine->parameters(), engine->gradients(), engine->buffers(), {},
              totals.loss,          totals.correct,      totals.in_top};
  for (OptimizerState& array : engine->optimizer_state()) state.optimizer.push_back(std::move(array.values));
  return state;
}

ParallelOptions model(std::vector<LayerPlacement> placements) {
  ParallelOptions options;
  options.model = std::move(placements);
  return options;
}

ParallelOptions pipeline(int stages, int micro_batches, PipelineSchedule schedule) {
  ParallelOptions options;
  options.pipeline = PipelineOptions{
      .stages = stages, .first_layers = {}, .micro_batches = micro_batches, .schedule = schedule};
  return options;
}

TEST(Stages, GiveTheBitsOfOneDevice) {
  for (const Training& training : trainings()) {
    const State one = train(training, {}, 2);
    const std::string last = training.network.layers.back().name;
    for (const int threads : {1, 2, 5}) {
      SCOPED_TRACE(testing::Message() << training.network.name << ", " << threads << " threads");
      EXPECT_TRUE(one == train(training, model({{last, "cpu:1"}, {"*", "cpu:0"}}), threads));
    }
  }
}

TEST(Stages, OfAPipelineGiveTheBitsOfOneDeviceForAnyNumberOfParts) {
  for (const Training& training : trainings()) {
    const State one = train(training, {}, 1);
    for (const int parts : {1, 2, 3, 7, 1000}) {
      for (const auto schedule : {PipelineSchedule::kGpipe, PipelineSchedule::kOneForwardOneBackward}) {
        SCOPED_TRACE(testing::Message() << training.network.name << ", " << parts << " parts, "
                                        << pipeline_schedule_name(schedule));
        EXPECT_TRUE(one == train(training, pipeline(2, parts, schedule), 2));
      }
    }
  }
}

TEST(Stages, OfAPipelineMayBeMoreThanThreads) {
  const Training training{test::deeplizard(), {1, 28, 28}, 100};
  EXPECT_TRUE(train(training, {}, 1) ==
              train(training, pipeline(4, 5, PipelineSchedule::kOneForwardOneBackward), 1));
}

TEST(Stages, OnADeviceThatHasSeveralGiveTheSameBits) {
  for (const Training& training : trainings()) {
    if (training.network.name != "deeplizard") continue;
    const ParallelOptions back_and_forth =
        model({{"conv1", "cpu:0"}, {"conv2", "cpu:1"}, {"fc1", "cpu:0"}, {"out", "cpu:1"}});
    EXPECT_TRUE(train(training, {}, 2) == train(training, back_and_forth, 2));
    for (const auto schedule : {PipelineSchedule::kGpipe, PipelineSchedule::kOneForwardOneBackward}) {
      ParallelOptions options = back_and_forth;
      options.pipeline =
          PipelineOptions{.stages = 0, .first_layers = {}, .micro_batches = 4, .schedule = schedule};
      EXPECT_TRUE(train(training, {}, 2) == train(training, options, 3));
    }
  }
}

TEST(Stages, ThatShareBatchesWithOtherSetsOfDevicesGiveTheSameBits) {
  for (const Training& training : trainings()) {
    const State one = train(training, {}, 1);
    for (const int data : {2, 3}) {
      SCOPED_TRACE(testing::Message() << training.network.name << ", data " << data);
      ParallelOptions options = pipeline(2, 3, PipelineSchedule::kOneForwardOneBackward);
      options.data = data;
      EXPECT_TRUE(one == train(training, options, 2));
      options.pipeline.reset();
      options.model = {{training.network.layers.back().name, "cpu:1"}, {"*", "cpu:0"}};
      EXPECT_TRUE(one == train(training, options, 4));
    }
  }
}

TEST(Stages, OfAnUnknownLayerAreRefused) {
  const Network network(test::mlp(), {1, 28, 28});
  EngineOptions options;
  options.parallel = model({{"conv*", "cpu:1"}});
  EXPECT_THROW(make_engine(network, options), ConfigError);
}

}  // namespace
}  // namespace sweep
