// Networks on several stand-in devices, which have the layers or the samples of a batch between them, or
// both, and trainings in turns: the same bits, whenever streams work.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/kernels/cuda/ways.h"
#include "tests/cudart/machine.h"
#include "tests/support/environment.h"

namespace sweep::test {
namespace {

// Checked after all tests of this program: nothing is loaded or allocated while a device exchanges.
class NoMistakes final : public testing::Environment {
  void TearDown() override { EXPECT_THAT(cuda::cudart::mistakes(), testing::IsEmpty()); }
};
const testing::Environment* const no_mistakes = testing::AddGlobalTestEnvironment(new NoMistakes);

TEST(Stages, MayBeginWithAnyLayer) {
  for (const Training& training :
       {kCnn, Training{test::mlp(), {1, 9, 9}}, kShortcuts, Training{test::small_residual(), {3, 8, 8}}}) {
    const EngineOutcome one = train(training, {});
    const Network network = network_of(training);
    for (const Layer& layer : network.layers().subspan(1)) {
      if (layer.type == "residual") continue;  // has the name of the layers in it, too
      for (const int parts : {1, 3}) {
        const Way way{.stages = 2, .micro_batches = parts, .schedule = kEager};
        EXPECT_TRUE(test::same_bits(one, train(cut_before(training, {layer.name}), way)))
            << layer.name << text(training, way);
      }
    }
  }
}

TEST(Stages, MayHaveAShortcutPastOtherStages) {
  std::vector<Way> ways;
  for (const int parts : {1, 2, 4}) {
    for (const auto schedule : {PipelineSchedule::kGpipe, kEager})
      ways.push_back({.stages = 4, .micro_batches = parts, .schedule = schedule});
  }
  expect_the_bits_of({}, ways,
                     {cut_before(kShortcuts, {"first.b", "second.d", "second.e"}),
                      cut_before(kShortcuts, {"first.norm", "second.leaky", "out"})});
}

TEST(Stages, HaveTheLossesOfOneDevice) {
  Training smoothed = cut_before(kCnn, {"pool1"});
  smoothed.options.loss.label_smoothing = 0.1;
  Training without_head{{"n",
                         {test::conv("conv", 4, 3),
                          test::flatten("flatten"),
                          test::linear("fc", 10),
                          {"dropout", "dropout", {{"p", 0.1}}}}},
                        {1, 6, 6},
                        {"fc"}};
  without_head.options.optimizer = SgdOptions{.momentum = 0.9};
  without_head.options.clip_norm = 0;
  std::vector<Way> ways;
  for (const int parts : {1, 2, 5}) ways.push_back({.stages = 2, .micro_batches = parts, .schedule = kEager});
  expect_the_bits_of({}, ways, {smoothed, without_head});
}

// The weight gradients of layers that one kernel has on one device are sums of as many parts on several.
TEST(Stages, AddUpALargeBatchAsOneDevice) {
  constexpr std::size_t kSamples = 1700;
  const Network network({"wide",
                         {test::flatten("flatten"), test::linear("fc1", 120), test::relu("relu1"),
                          test::linear("fc2", 120), test::relu("relu2"), test::linear("out", 10)}},
                        {1, 4, 4});
  const OwnedBatch batch = test::random_batch(kSamples, 16, 10, 3);
  const auto gradients = [&](std::vector<std::string> cuts, int micro_batches) {
    EngineOptions options = default_options();
    options.batch_size = kSamples;
    if (!cuts.empty())
      options.parallel.pipeline =
          PipelineOptions{.stages = 0, .first_layers = std::move(cuts), .micro_batches = micro_batches};
    const auto engine = make_engine(network, options);
    engine->set_parameters(initial_parameters(network, 3));
    engine->train(batch.view(), 0.01);
    return engine->gradients();
  };
  const std::vector<float> one = gradients({}, 1);
  EXPECT_EQ(gradients({"out"}, 1), one);
  EXPECT_EQ(gradients({"fc2"}, 3), one);
}

// With and without micro-batches: shares of a batch one by one, or all under way at once, or in
// micro-batches.
TEST(SeveralDevices, HaveTheSameBitsWithStages) {
  const std::pair<Way, std::vector<Way>> same[] = {
      {{.accumulate = 2},
       {{.accumulate = 2, .stages = 2},
        {.accumulate = 2, .stages = 3, .micro_batches = 3},
        {.accumulate = 2, .stages = 2, .micro_batches = 2, .schedule = kEager}}},
      {{.accumulate = 5},
       {{.accumulate = 5, .stages = 3},
        {.accumulate = 5, .stages = 3, .micro_batches = 4, .schedule = kEager}}},
      {{.data = 2},
       {{.data = 2, .stages = 2},
        {.data = 2, .stages = 3, .micro_batches = 4},
        {.data = 2, .stages = 2, .micro_batches = 9, .schedule = kEager},
        {.data = 4, .stages = 2, .micro_batches = 2, .schedule = kEager}}},
      {{.data = 3, .accumulate = 2},
       {{.data = 2, .accumulate = 2, .stages = 3},
        {.data = 4, .accumulate = 2, .stages = 2, .micro_batches = 3, .schedule = kEager}}}};
  for (const auto& [one, several] : same) expect_the_bits_of(one, several, trainings());
}

// Stages of one device have one group of NCCL; sets of devices may begin with any.
TEST(Replicas, MayHaveAnyDevices) {
  const auto trained = [](std::vector<LayerPlacement> model, int first = 0) {
    Training training = kResidual;
    training.options.parallel.model = std::move(model);
    training.options.device.index = first;
    return train(training, {.data = 2});
  };
  const EngineOutcome one = trained({});
  EXPECT_TRUE(test::same_bits(one, trained({}, 2)));
  EXPECT_TRUE(
      test::same_bits(one, trained({{"stem", "cuda:2"}, {"block1", "cuda:0"}, {"block2", "cuda:2"}})));
  EXPECT_TRUE(
      test::same_bits(one, trained({{"stem", "cuda:1"}, {"block2.bn1", "cuda:0"}, {"out", "cuda:1"}})));
  EXPECT_TRUE(test::same_bits(one, trained({{"stem", "cuda:5"}})));
}

TEST(SeveralDevices, GiveTheSameBitsWhenStreamsWorkAtRandomTimes) {
  const Way staged{.stages = 3, .schedule = kEager}, in_micro_batches{.stages = 3, .micro_batches = 3},
      shared{.data = 3, .accumulate = 2}, all{.data = 2, .accumulate = 2, .stages = 3, .micro_batches = 8};
  for (const Training& training : {kCnn, small_mlp(), kResidual, kShortcuts}) {
    for (const Way& way : {staged, in_micro_batches, shared, all}) {
      if (training.cuts.size() < static_cast<std::size_t>(way.stages - 1)) continue;
      const EngineOutcome late = train(training, way);
      for (const std::uint64_t seed : {1, 2, 3}) {
        cuda::cudart::set_stream_seed(seed);
        EXPECT_TRUE(test::same_bits(train(training, way), late)) << text(training, way) << ", seed " << seed;
      }
      cuda::cudart::set_stream_seed(0);
    }
  }
}

// A stage may be far ahead of the one that copies from it.
TEST(SeveralDevices, KeepABatchUntilTheNextStageHasIt) {
  for (const Way& way : {Way{}, Way{.stages = 2, .micro_batches = 2}}) {
    const auto trained = [&] {
      const auto engine = engine_of(small_mlp(), way);
      for (std::uint64_t batch = 0; batch < 40; ++batch)
        engine->train(batch_of(small_mlp(), batch % 9 == 0 ? 3 : 11, batch).view(), 0.1);
      for (std::uint64_t batch = 0; batch < 40; ++batch)
        engine->evaluate(batch_of(small_mlp(), 11, batch).view());
      return std::pair(engine->take_totals().loss, engine->parameters());
    };
    const auto late = trained();
    for (std::uint64_t seed = 1; seed <= 15; ++seed) {
      cuda::cudart::set_stream_seed(seed);
      EXPECT_EQ(trained(), late) << seed;
    }
    cuda::cudart::set_stream_seed(0);
  }
}

TEST(SeveralDevices, WorkWithLibraries) {
  const test::Environment variable("SWEEP_CUDA_KERNELS", "library");
  for (const auto& [one, several] : {std::pair{Way{}, Way{.stages = 2, .micro_batches = 2}},
                                     {Way{.data = 2}, Way{.data = 2, .stages = 2}},
                                     {Way{.accumulate = 2}, Way{.accumulate = 2, .stages = 2}}}) {
    const std::string kernels = engine_of(kResidual, one)->kernels();
    EXPECT_NE(kernels, "builtin");
    EXPECT_EQ(engine_of(kResidual, several)->kernels(), kernels);
    EXPECT_TRUE(test::same_bits(train(kResidual, one), train(kResidual, several)))
        << text(kResidual, several);
  }
}

TEST(SeveralDevices, GoOnWithWhatOthersHaveTrained) {
  const auto go_on = [&](const Training& training, const std::vector<Way>& ways) {
    auto engine = engine_of(training, ways[0]);
    take_steps(*engine, training, ways[0]);
    for (const Way& way : std::span(ways).subspan(1)) {
      auto next = engine_of(training, way);
      test::hand_over(*engine, *next);
      engine = std::move(next);
      take_steps(*engine, training, way);
    }
    engine->take_totals();
    return outcome_of(*engine, training, ways[0]);
  };
  using Ways = std::vector<Way>;
  const std::pair<Ways, Ways> chains[] = {
      {{{}, {}, {}}, {{.stages = 2, .micro_batches = 2}, {}, {.stages = 3, .micro_batches = 3}}},
      {{{.data = 2}, {.data = 2}, {.data = 2}},
       {{.data = 4, .stages = 2, .micro_batches = 2},
        {.data = 2, .stages = 3, .schedule = kEager},
        {.data = 3}}},
      {{{.accumulate = 3}, {.accumulate = 3}},
       {{.accumulate = 3, .stages = 3}, {.accumulate = 3, .stages = 2}}}};
  for (const Training& training : {kCnn, small_mlp(), kResidual, kShortcuts}) {
    for (const auto& [one, several] : chains)
      EXPECT_TRUE(test::same_bits(go_on(training, one), go_on(training, several)))
          << text(training, several[0]);
  }
}

}  // namespace
}  // namespace sweep::test
