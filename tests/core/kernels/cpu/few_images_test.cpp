// A block with few images has kernels of its own in convolutions: with the same bits as next to others that
// do not count.

#include "core/kernels/cpu/cpu_engine.h"
#include "tests/core/kernels/cpu/simd_targets.h"
#include "tests/support/test.h"
#include "tests/support/training.h"

namespace sweep::cpu::few_images_test {

struct Case {
  const char* name;
  Shape input;
  Arguments arguments;
  std::int64_t channels = 6;  // that the convolution reads
  bool pool = false;
};

using Pair = std::array<std::int64_t, 2>;

NetworkSpec network_of(const Case& c) {
  const Arguments first = {{"out_channels", c.channels}, {"kernel_size", Pair{1, 1}}};
  std::vector<LayerSpec> layers = {
      {"first", "conv2d", first}, {"act", "tanh"}, {"conv", "conv2d", c.arguments}, {"relu", "relu"}};
  if (c.pool) layers.push_back({"pool", "max_pool2d", {{"kernel_size", Pair{2, 2}}}});
  layers.push_back(test::flatten("flatten"));
  layers.push_back({"out", "linear", {{"out_features", std::int64_t{3}}}});
  return {"net", layers};
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
          {"a column", {1, 100, 1}, arguments(4, {9, 1}, {1, 1}, {0, 0})},
          {"Winograd", {2, 18, 13}, arguments(17, {3, 3}, {1, 1}, {1, 2}), 17},
          {"Winograd, more padding", {2, 11, 15}, arguments(8, {3, 3}, {1, 1}, {3, 0}), 16},
          {"Winograd with stride", {2, 16, 31}, arguments(32, {3, 3}, {2, 2}, {1, 1}), 16},
          {"Winograd with stride, even padding", {2, 17, 33}, arguments(32, {3, 3}, {2, 2}, {0, 0}), 16},
          {"pooled", {2, 15, 22}, arguments(7, {4, 3}, {2, 1}, {1, 0}), 3, true},
          {"pooled by Winograd, 3x3", {2, 18, 22}, arguments(7, {3, 3}, {1, 1}, {1, 1}), 6, true},
          {"pooled by Winograd, 5x5", {2, 13, 28}, arguments(7, {5, 5}, {1, 1}, {0, 2}), 3, true}};
}

struct Trained {
  std::vector<float> parameters, gradients, outputs;
  bool operator==(const Trained&) const = default;
};

// Steps with `images` each, next to which there are others of a class without weight, or none.
Trained train(const Case& c, std::size_t images, bool has_others) {
  const Network network(network_of(c), c.input);
  EngineOptions options{.threads = 1, .batch_size = 16};
  options.optimizer = SgdOptions{.momentum = 0.9};
  options.loss.class_weights = {1, 2, 0};
  const auto engine = make_cpu_engine(network, options);
  engine->set_parameters(initial_parameters(network, 7));
  test::OwnedBatch batch = test::random_batch(48, element_count(c.input), 2, 3);
  for (std::size_t i = 0; i < batch.labels.size(); ++i) {
    if (i % 16 >= images) batch.labels[i] = 2;
  }
  Trained trained;
  for (std::uint32_t first = 0; first < 48; first += 16) {
    batch.indices.resize(has_others ? 16 : images);
    std::iota(batch.indices.begin(), batch.indices.end(), first);
    engine->train(batch.view(), 0.001);
    trained.outputs.resize(3 * batch.indices.size());
    engine->predict(batch.view(), trained.outputs);
    trained.outputs.resize(3 * images);
  }
  trained.parameters = engine->parameters();
  trained.gradients = engine->gradients();
  return trained;
}

TEST(FewImages, TrainWithTheBitsOfALargerBatchOnEveryInstructionSet) {
  for (const Case& c : cases()) {
    for (const std::size_t images : {1, 2, 3, 4, 7, 8}) {
      test::for_each_simd_target([&](const std::string& target) {
        SCOPED_TRACE(std::to_string(images) + ", " + c.name + (" on " + target));
        const Trained alone = train(c, images, false);
        EXPECT_TRUE(alone == train(c, images, true));
        const auto used = std::ranges::count_if(alone.gradients, [](float g) { return g != 0; });
        EXPECT_GT(static_cast<std::size_t>(used), alone.gradients.size() / 8);
      });
    }
  }
}

}  // namespace sweep::cpu::few_images_test
