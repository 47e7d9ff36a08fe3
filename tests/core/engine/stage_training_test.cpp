// Training a network whose layers are on several devices: the bits of one device.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "core/base/error.h"
#include "core/engine/stages.h"
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

// Skips a test that needs more devices than there are.
#define SKIP_WITHOUT_DEVICES(count)              \
  if (const auto reason = missing_device(count)) \
  GTEST_SKIP() << "needs " << (count) << " of the devices: " << *reason

std::optional<std::string> missing_device(int count) {
  if (test::device().type == DeviceType::kCpu) return std::nullopt;
  return unavailable_reason({test::device().type, count - 1});
}

// place(1), "cuda:1"
std::string place(int index) { return Device{test::device().type, index}.name(); }

std::vector<Training> trainings() {
  if (test::device_is_stand_in()) {
    return {{test::deeplizard(), {1, 28, 28}, 37},
            {test::deeplizard(), {1, 28, 28}, 6},
            {with_dropout(test::mlp()), {1, 28, 28}, 50},
            {with_dropout(test::small_residual()), {3, 8, 8}, 21}};
  }
  return {{test::deeplizard(), {1, 28, 28}, 333},
          {test::deeplizard(), {1, 28, 28}, 16},
          {with_dropout(test::mlp()), {1, 28, 28}, 200},
          {with_dropout(test::small_residual()), {3, 8, 8}, 150}};
}

// Two steps on a whole batch and one on a short one, then an evaluation.
State train(const Training& training, const ParallelOptions& parallel, int threads) {
  const Network network(training.network, training.input);
  EngineOptions options{.device = test::device(), .threads = threads, .batch_size = training.batch_size};
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

// Threads are the CPU's.
std::vector<int> thread_counts() {
  return test::device().type == DeviceType::kCpu ? std::vector<int>{1, 2, 5} : std::vector<int>{1};
}

// Whether NVIDIA's libraries train, which may choose another algorithm for a part of a batch. Then the number
// of parts may change the bits, but the number of devices does not.
bool is_cut_by_libraries(const Training& training) {
  if (test::device_is_stand_in()) return false;
  const Network network(training.network, training.input);
  return make_engine(network, {.device = test::device(), .batch_size = training.batch_size})
      ->kernels()
      .starts_with('{');
}

State of_one_stage(const Training& training, const ParallelOptions& parallel) {
  return train(training, pipeline(1, parallel.pipeline->micro_batches, parallel.pipeline->schedule), 1);
}

TEST(Stages, GiveTheBitsOfOneDevice) {
  SKIP_WITHOUT_DEVICES(2);
  for (const Training& training : trainings()) {
    const State one = train(training, {}, 2);
    const std::string last = training.network.layers.back().name;
    for (const int threads : thread_counts()) {
      SCOPED_TRACE(testing::Message() << training.network.name << ", " << threads << " threads");
      EXPECT_TRUE(one == train(training, model({{last, place(1)}, {"*", place(0)}}), threads));
    }
  }
}

TEST(Stages, OfAPipelineGiveTheBitsOfOneDeviceForAnyNumberOfParts) {
  SKIP_WITHOUT_DEVICES(2);
  for (const Training& training : trainings()) {
    const State one = train(training, {}, 1);
    for (const int parts : {1, 2, 3, 7, 1000}) {
      for (const auto schedule : {PipelineSchedule::kGpipe, PipelineSchedule::kOneForwardOneBackward}) {
        SCOPED_TRACE(testing::Message() << training.network.name << ", " << parts << " parts, "
                                        << pipeline_schedule_name(schedule));
        const ParallelOptions two = pipeline(2, parts, schedule);
        EXPECT_TRUE(train(training, two, 2) ==
                    (is_cut_by_libraries(training) ? of_one_stage(training, two) : one));
      }
    }
  }
}

TEST(Stages, OfAPipelineMayBeMoreThanThreads) {
  SKIP_WITHOUT_DEVICES(4);
  Training training = trainings().front();
  training.batch_size = std::min<std::size_t>(training.batch_size, 100);
  const ParallelOptions four = pipeline(4, 5, PipelineSchedule::kOneForwardOneBackward);
  EXPECT_TRUE(train(training, four, 1) ==
              (is_cut_by_libraries(training) ? of_one_stage(training, four) : train(training, {}, 1)));
}

TEST(Stages, OnADeviceThatHasSeveralGiveTheSameBits) {
  SKIP_WITHOUT_DEVICES(2);
  for (const Training& training : trainings()) {
    if (training.network.name != "deeplizard") continue;
    const ParallelOptions back_and_forth =
        model({{"conv1", place(0)}, {"conv2", place(1)}, {"fc1", place(0)}, {"out", place(1)}});
    const State one = train(training, {}, 2);
    EXPECT_TRUE(one == train(training, back_and_forth, 2));
    for (const auto schedule : {PipelineSchedule::kGpipe, PipelineSchedule::kOneForwardOneBackward}) {
      ParallelOptions options = back_and_forth;
      options.pipeline =
          PipelineOptions{.stages = 0, .first_layers = {}, .micro_batches = 4, .schedule = schedule};
      EXPECT_TRUE(train(training, options, 3) ==
                  (is_cut_by_libraries(training) ? of_one_stage(training, options) : one));
    }
  }
}

TEST(Stages, ThatShareBatchesWithOtherSetsOfDevicesGiveTheSameBits) {
  SKIP_UNLESS_CPU();
  for (const Training& training : trainings()) {
    const State one = train(training, {}, 1);
    for (const int data : {2, 3}) {
      SCOPED_TRACE(testing::Message() << training.network.name << ", data " << data);
      ParallelOptions options = pipeline(2, 3, PipelineSchedule::kOneForwardOneBackward);
      options.data = data;
      EXPECT_TRUE(one == train(training, options, 2));
      options.pipeline.reset();
      options.model = {{training.network.layers.back().name, place(1)}, {"*", place(0)}};
      EXPECT_TRUE(one == train(training, options, 4));
    }
  }
}

TEST(Stages, OfAnUnknownLayerAreRefused) {
  const Network network(test::mlp(), {1, 28, 28});
  SKIP_WITHOUT_DEVICES(2);
  EngineOptions options{.device = test::device()};
  options.parallel = model({{"conv*", place(1)}});
  EXPECT_THROW(make_engine(network, options), ConfigError);
}

}  // namespace
}  // namespace sweep
