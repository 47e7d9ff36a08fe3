// Every kernel in short trainings that are watched for races, and with threads and blocks in random orders.
// The tests of single kernels in this program are watched, too.

#include <cuda_runtime.h>
#include "tests/cudart/race_check.h"
#include "tests/support/training.h"

namespace sweep::cuda::kernel_race_test {

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

struct Case {
  std::string name;
  test::Training training;
  test::Way way = {};
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

std::vector<Case> cases() {
  using namespace test;
  const EngineOptions adam = options_with(AdamOptions{}), clipped = options_with(AdamOptions{}, 0.5);
  EngineOptions smoothed = options_with(SgdOptions{.momentum = 0.9}), squares = adam;
  smoothed.loss = {.kind = LossOptions::Kind::kCrossEntropy, .label_smoothing = 0.1};
  squares.loss = {.kind = LossOptions::Kind::kMse};
  const std::vector<std::size_t> sizes = {6, 3};
  return {
      {"FusedLayersInStages",
       {deeplizard(), {1, 28, 28}, clipped, sizes, {"conv2", "fc2"}},
       {.stages = 3, .micro_batches = 2}},
      {"FusedConvolutions", {deeplizard(), {1, 28, 28}, clipped, sizes}},
      {"FusedLinearLayers", {mlp(), {1, 28, 28}, smoothed, sizes}},
      {"Residual", {small_residual(), {2, 9, 8}, options_with(RmspropOptions{.centered = true}), sizes}},
      {"WideConvolutions", {wide_convolutions(), {3, 8, 6}, adam, sizes}},
      {"WideLinearLayers",
       {{"n",
         {flatten("f"), linear("wide", 700), relu("r1"), dropout(0.3), linear("narrow", 40),
          layer("tanh", "tanh"), linear("out", 10)}},
        {1, 9, 9},
        adam,
        sizes}},
      {"PoolsAndActivations",
       {{"n",
         {conv("c1", 5, 3), layer("leaky", "leaky_relu"),
          layer("average", "avg_pool2d", {{"kernel_size", std::int64_t{2}}}), conv("c2", 4, 2),
          layer("sigmoid", "sigmoid"), pool("p", 3), flatten("f"), linear("out", 10)}},
        {1, 16, 15},
        squares,
        sizes}},
      {"TurnsOfASharedBatch", {small_residual(), {2, 9, 8}, adam, sizes}, {.data = 2, .accumulate = 2}},
  };
}

class KernelRaces : public testing::TestWithParam<Case> {};

TEST_P(KernelRaces, AreNoneAndRandomOrdersChangeNoBits) {
  const auto& [name, training, way] = GetParam();
  const test::EngineOutcome forward = test::train(training, way);
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    cudart::set_order(cudart::Order::kRandom, seed);
    EXPECT_TRUE(test::same_bits(test::train(training, way), forward)) << "seed " << seed;
  }
  cudart::set_order(cudart::Order::kForward);
}

INSTANTIATE_TEST_SUITE_P(Of, KernelRaces, testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace sweep::cuda::kernel_race_test
