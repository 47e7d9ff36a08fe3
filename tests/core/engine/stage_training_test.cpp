// Training a network whose layers are on several devices: the bits of one device.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "core/base/error.h"
#include "core/engine/stages.h"
#include "tests/core/engine/engine_for.h"
#include "tests/support/engine_outcome.h"
#include "tests/support/message_of.h"

namespace sweep {
namespace {

using test::EngineOutcome;

struct Training {
  NetworkSpec network;
  Shape input;
  std::size_t batch_size;
};

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
            {test::with_dropout(test::mlp()), {1, 28, 28}, 50},
            {test::with_dropout(test::small_residual()), {3, 8, 8}, 21}};
  }
  return {{test::deeplizard(), {1, 28, 28}, 333},
          {test::deeplizard(), {1, 28, 28}, 16},
          {test::with_dropout(test::mlp()), {1, 28, 28}, 200},
          {test::with_dropout(test::small_residual()), {3, 8, 8}, 150}};
}

// Two steps on a whole batch and one on a short one, then an evaluation.
EngineOutcome train(const Training& training, const ParallelOptions& parallel, int threads,
                    int accumulate = 1) {
  const Network network(training.network, training.input);
  EngineOptions options{.device = test::device(), .threads = threads, .batch_size = training.batch_size};
  options.optimizer = AdamOptions{};
  options.clip_norm = 0.5;
  options.seed = 7;
  options.parallel = parallel;
  options.accumulation_steps = accumulate;
  const auto engine = make_engine(network, options);
  engine->set_parameters(initial_parameters(network, 3));
  const test::OwnedBatch batch =
      test::random_batch(training.batch_size, element_count(network.input()), 10, 11);
  const std::size_t sizes[] = {training.batch_size, training.batch_size / 3 + 1, training.batch_size};
  test::train_steps(*engine, batch.view(), sizes);
  return test::outcome_of(*engine, network, batch.view());
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
  const auto engine = make_engine(network, {.device = test::device(), .batch_size = training.batch_size});
  return !engine->kernels().empty() && engine->kernels() != "builtin";
}

EngineOutcome of_one_stage(const Training& training, const ParallelOptions& parallel, int accumulate = 1) {
  return train(training, pipeline(1, parallel.pipeline->micro_batches, parallel.pipeline->schedule), 1,
               accumulate);
}

TEST(Stages, GiveTheBitsOfOneDevice) {
  SKIP_WITHOUT_DEVICES(2);
  for (const Training& training : trainings()) {
    const EngineOutcome one = train(training, {}, 2);
    const std::string last = training.network.layers.back().name;
    for (const int threads : thread_counts()) {
      SCOPED_TRACE(testing::Message() << training.network.name << ", " << threads << " threads");
      EXPECT_TRUE(test::same_bits(one, train(training, model({{last, place(1)}, {"*", place(0)}}), threads)));
    }
  }
}

TEST(Stages, OfAPipelineGiveTheBitsOfOneDeviceForAnyNumberOfParts) {
  SKIP_WITHOUT_DEVICES(2);
  for (const Training& training : trainings()) {
    const EngineOutcome one = train(training, {}, 1);
    for (const int parts : {1, 2, 3, 7, 1000}) {
      for (const auto schedule : {PipelineSchedule::kGpipe, PipelineSchedule::kOneForwardOneBackward}) {
        SCOPED_TRACE(testing::Message() << training.network.name << ", " << parts << " parts, "
                                        << pipeline_schedule_names().of(schedule));
        const ParallelOptions two = pipeline(2, parts, schedule);
        EXPECT_TRUE(test::same_bits(train(training, two, 2),
                                    is_cut_by_libraries(training) ? of_one_stage(training, two) : one));
      }
    }
  }
}

TEST(Stages, OfAPipelineMayBeMoreThanThreads) {
  SKIP_WITHOUT_DEVICES(4);
  Training training = trainings().front();
  training.batch_size = std::min<std::size_t>(training.batch_size, 100);
  const ParallelOptions four = pipeline(4, 5, PipelineSchedule::kOneForwardOneBackward);
  EXPECT_TRUE(test::same_bits(train(training, four, 1), is_cut_by_libraries(training)
                                                            ? of_one_stage(training, four)
                                                            : train(training, {}, 1)));
}

TEST(Stages, OnADeviceThatHasSeveralGiveTheSameBits) {
  SKIP_WITHOUT_DEVICES(2);
  for (const Training& training : trainings()) {
    if (training.network.name != "deeplizard") continue;
    const ParallelOptions back_and_forth =
        model({{"conv1", place(0)}, {"conv2", place(1)}, {"fc1", place(0)}, {"out", place(1)}});
    const EngineOutcome one = train(training, {}, 2);
    EXPECT_TRUE(test::same_bits(one, train(training, back_and_forth, 2)));
    for (const auto schedule : {PipelineSchedule::kGpipe, PipelineSchedule::kOneForwardOneBackward}) {
      ParallelOptions options = back_and_forth;
      options.pipeline =
          PipelineOptions{.stages = 0, .first_layers = {}, .micro_batches = 4, .schedule = schedule};
      EXPECT_TRUE(test::same_bits(train(training, options, 3),
                                  is_cut_by_libraries(training) ? of_one_stage(training, options) : one));
    }
  }
}

TEST(Stages, OfBatchesInTurnsGiveTheBitsOfOneDeviceInTurns) {
  SKIP_WITHOUT_DEVICES(2);
  for (const Training& training : trainings()) {
    const std::string last = training.network.layers.back().name;
    for (const int accumulate : {2, 5}) {
      SCOPED_TRACE(testing::Message() << training.network.name << ", accumulate " << accumulate);
      const EngineOutcome one = train(training, {}, 1, accumulate);
      EXPECT_TRUE(
          test::same_bits(one, train(training, model({{last, place(1)}, {"*", place(0)}}), 2, accumulate)));
      const ParallelOptions two = pipeline(2, 3, PipelineSchedule::kOneForwardOneBackward);
      EXPECT_TRUE(
          test::same_bits(train(training, two, 2, accumulate),
                          is_cut_by_libraries(training) ? of_one_stage(training, two, accumulate) : one));
    }
  }
}

// Each set of devices has all stages. GPUs that share batches have other bits than one, but the same however
// many they are.
void expect_the_bits_of_sets_without_stages(int data, int accumulate) {
  const bool has_bits_of_one = test::device().type == DeviceType::kCpu;
  for (const Training& training : trainings()) {
    SCOPED_TRACE(testing::Message() << training.network.name << ", data " << data << ", accumulate "
                                    << accumulate);
    ParallelOptions sets;
    sets.data = has_bits_of_one ? 1 : 2;
    const EngineOutcome expected = train(training, sets, 1, accumulate);
    ParallelOptions options = pipeline(2, 3, PipelineSchedule::kOneForwardOneBackward);
    options.data = data;
    EXPECT_TRUE(test::same_bits(expected, train(training, options, 2, accumulate)));
    options.pipeline.reset();
    options.model = {{training.network.layers.back().name, place(1)}, {"*", place(0)}};
    EXPECT_TRUE(test::same_bits(expected, train(training, options, 4, accumulate)));
  }
}

TEST(Stages, ThatShareBatchesWithOtherSetsOfDevicesGiveTheSameBits) {
  SKIP_WITHOUT_DEVICES(4);
  expect_the_bits_of_sets_without_stages(2, 1);
  expect_the_bits_of_sets_without_stages(2, 2);
  if (!missing_device(6)) expect_the_bits_of_sets_without_stages(3, 1);
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
