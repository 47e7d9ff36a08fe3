// A block with one image has kernels of its own in the direct convolutions: with the same bits as next to
// another image that does not count.

#include "core/kernels/cpu/cpu_engine.h"
#include "tests/core/kernels/cpu/simd_targets.h"
#include "tests/support/test.h"
#include "tests/support/training.h"

namespace sweep::cpu::one_image_test {

struct Case {
  const char* name;
  Shape input;
  Arguments arguments;
};

using Pair = std::array<std::int64_t, 2>;

NetworkSpec network_of(const Case& c) {
  const Arguments first = {{"out_channels", std::int64_t{6}}, {"kernel_size", Pair{1, 1}}};
  return {"net",
          {{"first", "conv2d", first},
           {"act", "tanh"},
           {"conv", "conv2d", c.arguments},
           {"relu", "relu"},
           test::flatten("flatten"),
           {"out", "linear", {{"out_features", std::int64_t{3}}}}}};
}

std::vector<Case> cases() {
  const auto arguments = [](std::int64_t channels, Pair kernel, Pair stride, Pair padding,
                            Pair dilation = {1, 1}, std::int64_t groups = 1) {
    return Arguments{{"out_channels", channels}, {"kernel_size", kernel}, {"stride", stride},
                     {"padding", padding},       {"dilation", dilation},  {"groups", groups}};
  };
  return {{"5x5", {2, 19, 13}, arguments(17, {5, 5}, {1, 1}, {2, 2})},
          {"stride", {2, 19, 14}, arguments(33, {5, 3}, {2, 3}, {1, 0})},
          {"stride larger than the kernel", {2, 21, 24}, arguments(5, {2, 1}, {3, 4}, {0, 0})},
          {"padding larger than the kernel", {2, 5, 6}, arguments(3, {2, 2}, {1, 1}, {4, 5})},
          {"depthwise", {2, 12, 12}, arguments(6, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 6)},
          {"dilated", {2, 15, 17}, arguments(8, {3, 3}, {1, 1}, {2, 3}, {2, 3})},
          {"dilated with stride and groups", {2, 20, 17}, arguments(6, {3, 3}, {2, 2}, {2, 1}, {3, 2}, 2)},
          {"a row", {1, 1, 100}, arguments(4, {1, 9}, {1, 2}, {0, 4})},
          {"a column", {1, 100, 1}, arguments(4, {9, 1}, {1, 1}, {0, 0})}};
}

struct Trained {
  std::vector<float> parameters, gradients, outputs;
  bool operator==(const Trained&) const = default;
};

// Steps with one image each, next to which there is another of a class without weight, or none.
Trained train(const Case& c, bool has_other) {
  const Network network(network_of(c), c.input);
  const auto engine = make_cpu_engine(network, {.threads = 1,
                                                .batch_size = 2,
                                                .optimizer = SgdOptions{.momentum = 0.9},
                                                .loss = {.class_weights = {1, 2, 0}}});
  engine->set_parameters(initial_parameters(network, 7));
  test::OwnedBatch batch = test::random_batch(8, element_count(c.input), 2, 3);
  for (std::size_t i = 1; i < batch.labels.size(); i += 2) batch.labels[i] = 2;
  Trained trained;
  trained.outputs.resize(3);
  for (std::uint32_t i = 0; i < 8; i += 2) {
    batch.indices = has_other ? std::vector<std::uint32_t>{i, i + 1} : std::vector{i};
    engine->train(batch.view(), 0.001);
    std::vector<float> outputs(3 * batch.indices.size());
    engine->predict(batch.view(), outputs);
    std::copy_n(outputs.begin(), 3, trained.outputs.begin());
  }
  trained.parameters = engine->parameters();
  trained.gradients = engine->gradients();
  return trained;
}

TEST(OneImage, TrainsWithTheBitsOfALargerBatchOnEveryInstructionSet) {
  for (const Case& c : cases()) {
    test::for_each_simd_target([&](const std::string& target) {
      SCOPED_TRACE(c.name + (" on " + target));
      const Trained alone = train(c, false);
      EXPECT_TRUE(alone == train(c, true));
      const auto used = std::ranges::count_if(alone.gradients, [](float g) { return g != 0; });
      EXPECT_GT(static_cast<std::size_t>(used), alone.gradients.size() / 8);
    });
  }
}

}  // namespace sweep::cpu::one_image_test
