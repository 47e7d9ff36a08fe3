// Every kernel in short trainings that are watched for races, and with threads and blocks in random orders.
// The tests of single kernels in this program are watched, too.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include <cuda_runtime.h>
#include "core/engine/engine.h"
#include "tests/cudart/race_check.h"
#include "tests/support/batch.h"
#include "tests/support/environment.h"
#include "tests/support/test_networks.h"

namespace sweep::cuda {
namespace {

// Watches each test but those of RaceCheck itself, and fails it if there was a race.
class WatchEveryTest final : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& test) override {
    if (std::string(test.test_suite_name()) != "RaceCheck") check_ = std::make_unique<cudart::RaceCheck>();
  }
  void OnTestEnd(const testing::TestInfo&) override {
    if (check_ == nullptr) return;
    for (const std::string& race : check_->races()) ADD_FAILURE() << race;
    EXPECT_GT(check_->accesses(), 0u) << "no kernel was watched";
    check_.reset();
  }

  std::unique_ptr<cudart::RaceCheck> check_;
};

const bool watching = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new WatchEveryTest);  // which owns it
  return true;
}();

struct Training {
  std::string name;
  NetworkSpec network;
  Shape input;
  EngineOptions options = {};
};

void PrintTo(const Training& training, std::ostream* out) { *out << training.name; }

LayerSpec layer(std::string name, std::string type, Arguments arguments = {}) {
  return {std::move(name), std::move(type), std::move(arguments)};
}

std::vector<Training> trainings() {
  using test::conv, test::linear, test::relu, test::pool, test::flatten;
  const LossOptions smoothed{.kind = LossOptions::Kind::kCrossEntropy, .label_smoothing = 0.1};
  const LossOptions squares{.kind = LossOptions::Kind::kMse};
  ParallelOptions stages;
  stages.pipeline = PipelineOptions{.first_layers = {"conv2", "fc2"}, .micro_batches = 2};
  return {
      {"FusedLayersInStages", test::deeplizard(), {1, 28, 28}, {.clip_norm = 0.5, .parallel = stages}},
      {"FusedConvolutions", test::deeplizard(), {1, 28, 28}, {.clip_norm = 0.5}},
      {"FusedLinearLayers",
       test::mlp(),
       {1, 28, 28},
       {.optimizer = SgdOptions{.momentum = 0.9}, .loss = smoothed}},
      {"Residual", test::small_residual(), {2, 9, 8}, {.optimizer = RmspropOptions{.centered = true}}},
      {"WideConvolutions", test::wide_convolutions(), {3, 8, 6}},
      {"WideLinearLayers",
       {"n",
        {flatten("f"), linear("wide", 700), relu("r1"), layer("dropout", "dropout", {{"p", 0.3}}),
         linear("narrow", 40), layer("tanh", "tanh"), linear("out", 10)}},
       {1, 9, 9}},
      {"PoolsAndActivations",
       {"n",
        {conv("c1", 5, 3), layer("leaky", "leaky_relu"),
         layer("average", "avg_pool2d", {{"kernel_size", std::int64_t{2}}}), conv("c2", 4, 2),
         layer("sigmoid", "sigmoid"), pool("p", 3), flatten("f"), linear("out", 10)}},
       {1, 16, 15},
       {.loss = squares}},
      {"TurnsOfASharedBatch",
       test::small_residual(),
       {2, 9, 8},
       {.parallel = {.data = 2, .model = {}, .pipeline = {}}, .accumulation_steps = 2}},
  };
}

std::vector<float> train(const Training& training, std::size_t images) {
  const Network network(training.network, training.input);
  EngineOptions options = training.options;
  options.device = parse_device("cuda");
  options.batch_size = images;
  const auto engine = make_engine(network, options);
  engine->set_parameters(initial_parameters(network, 3));
  for (const std::size_t count : {images, images - 3}) {
    const test::OwnedBatch batch = test::random_batch(count, element_count(network.input()), 10, count);
    engine->train(batch.view(), 0.01);
    engine->evaluate(batch.view());
  }
  std::vector<float> outcome = engine->parameters();
  outcome.push_back(static_cast<float>(engine->take_totals().loss));
  return outcome;
}

class KernelRaces : public testing::TestWithParam<Training> {};

TEST_P(KernelRaces, AreNone) { train(GetParam(), 6); }

TEST_P(KernelRaces, ChangeNoBitsInRandomOrders) {
  const std::vector<float> forward = train(GetParam(), 5);
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    cudart::set_order(cudart::Order::kRandom, seed);
    EXPECT_EQ(train(GetParam(), 5), forward) << "seed " << seed;
  }
  cudart::set_order(cudart::Order::kForward);
}

INSTANTIATE_TEST_SUITE_P(Of, KernelRaces, testing::ValuesIn(trainings()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace sweep::cuda
