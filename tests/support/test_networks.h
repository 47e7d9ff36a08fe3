// Networks that several tests train.
#pragma once

#include "core/base/random.h"
#include "core/data/data_loader.h"
#include "core/network/network.h"
#include "tests/support/test.h"

namespace sweep::test {

inline LayerSpec conv(std::string name, std::int64_t channels, std::int64_t kernel) {
  return {std::move(name), "conv2d", {{"out_channels", channels}, {"kernel_size", kernel}}};
}
inline LayerSpec linear(std::string name, std::int64_t features) {
  return {std::move(name), "linear", {{"out_features", features}}};
}
inline LayerSpec relu(std::string name) { return {std::move(name), "relu", {}}; }
inline LayerSpec pool(std::string name, std::int64_t kernel) {
  return {std::move(name), "max_pool2d", {{"kernel_size", kernel}}};
}
inline LayerSpec flatten(std::string name) { return {std::move(name), "flatten", {}}; }

/// The Fashion-MNIST network of the deeplizard series.
inline NetworkSpec deeplizard() {
  return {"deeplizard",
          {conv("conv1", 6, 5), relu("relu1"), pool("pool1", 2), conv("conv2", 12, 5), relu("relu2"),
           pool("pool2", 2), flatten("flatten"), linear("fc1", 120), relu("relu3"), linear("fc2", 60),
           relu("relu4"), linear("out", 10)}};
}

/// The network with dropout in front of its last layer.
inline NetworkSpec with_dropout(NetworkSpec network) {
  network.layers.insert(network.layers.end() - 1, {"dropout", "dropout", {{"p", 0.3}}});
  return network;
}

/// 784-32-10 for 28×28 images.
inline NetworkSpec mlp() {
  return {"mlp", {flatten("flatten"), linear("fc1", 32), relu("relu1"), linear("out", 10)}};
}

/// Two residual blocks with batch normalization, the second with half the extents and twice the channels;
/// `narrow`: the first one's channels. For 8×8 images or larger ones.
inline NetworkSpec small_residual(std::int64_t narrow = 4) {
  const auto conv_of = [](std::string name, std::int64_t channels, std::int64_t kernel, std::int64_t stride) {
    return LayerSpec{std::move(name),
                     "conv2d",
                     {{"out_channels", channels},
                      {"kernel_size", kernel},
                      {"stride", stride},
                      {"padding", kernel / 2},
                      {"bias", false}}};
  };
  const auto norm = [](std::string name) { return LayerSpec{std::move(name), "batch_norm2d"}; };
  const auto block = [&](std::string name, std::int64_t channels, std::int64_t stride) {
    LayerSpec residual{std::move(name), "residual"};
    residual.layers = {conv_of("conv1", channels, 3, stride), norm("bn1"), relu("relu"),
                       conv_of("conv2", channels, 3, 1), norm("bn2")};
    if (stride > 1) residual.shortcut = {conv_of("conv", channels, 1, stride), norm("bn")};
    return residual;
  };
  return {"small-residual",
          {conv_of("stem", narrow, 3, 1),
           norm("bn"),
           relu("relu"),
           block("block1", narrow, 1),
           relu("relu1"),
           block("block2", 2 * narrow, 2),
           relu("relu2"),
           {"average", "adaptive_avg_pool2d", {{"output_size", std::int64_t{1}}}},
           flatten("flatten"),
           linear("out", 10)}};
}

/// 3×3 convolutions of many channels, as the CPU engine does by Winograd's algorithm: with and without
/// padding, groups, bias and a ReLU behind them; for images of 12×10 or more.
inline NetworkSpec wide_convolutions() {
  const auto conv_3x3 = [](std::string name, std::int64_t channels, Arguments arguments) {
    LayerSpec spec = conv(std::move(name), channels, 3);
    spec.arguments.merge(arguments);
    return spec;
  };
  return {"wide-convolutions",
          {conv_3x3("stem", 17, {{"padding", std::int64_t{1}}}),
           relu("relu1"),
           conv_3x3("odd", 32, {{"padding", std::array<std::int64_t, 2>{2, 0}}}),
           relu("relu2"),
           conv_3x3("groups", 34, {{"groups", std::int64_t{2}}, {"bias", false}}),
           conv_3x3("plain", 19, {{"padding", std::int64_t{1}}}),
           {"average", "adaptive_avg_pool2d", {{"output_size", std::int64_t{2}}}},
           flatten("flatten"),
           linear("out", 10)}};
}

/// A convolution whose activation is not one that the engines compute with it.
inline NetworkSpec unfused_cnn() {
  return {"unfused",
          {conv("conv", 5, 3),
           {"leaky", "leaky_relu", {}},
           {"dropout", "dropout", {{"p", 0.2}}},
           flatten("flatten"),
           linear("fc1", 40),
           {"tanh", "tanh", {}},
           linear("out", 10)}};
}

/// Batch normalization of the input, without parameters and with gradients for nobody, and twice of a
/// convolution whose input others also read.
inline NetworkSpec norm_first() {
  LayerSpec residual{"block", "residual"};
  residual.layers = {{"bn1", "batch_norm2d"}, relu("relu"), conv("conv2", 4, 1)};
  return {"norm-first",
          {{"bare", "batch_norm2d", {{"affine", false}}},
           conv("conv1", 4, 3),
           residual,
           {"bn2", "batch_norm2d"},
           {"dropout", "dropout", {{"p", 0.2}}},
           flatten("flatten"),
           linear("out", 10)}};
}

/// A shortcut past two stages, one that begins at the input, and a first layer without parameters.
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

/// A batch that owns the samples it points to.
struct OwnedBatch {
  std::vector<std::uint8_t> pixels;
  std::vector<std::int32_t> labels;
  std::vector<std::uint32_t> indices;
  Batch view() const { return {pixels, labels, indices}; }
};

/// `images` samples of `pixels` bytes each, in order.
inline OwnedBatch random_batch(std::size_t images, std::size_t pixels, std::int32_t classes,
                               std::uint64_t seed) {
  RandomStream random(seed, RandomUse::kShuffle);
  OwnedBatch batch;
  for (std::size_t i = 0; i < images * pixels; ++i)
    batch.pixels.push_back(static_cast<std::uint8_t>(random.next_u32()));
  for (std::size_t i = 0; i < images; ++i) {
    batch.labels.push_back(static_cast<std::int32_t>(random.below(static_cast<std::uint32_t>(classes))));
    batch.indices.push_back(static_cast<std::uint32_t>(i));
  }
  return batch;
}

/// The same samples as a data set, each of `shape`.
inline std::shared_ptr<const TensorDataset> random_set(std::size_t images, const Shape& shape,
                                                       std::int32_t classes, std::uint64_t seed) {
  OwnedBatch batch = random_batch(images, element_count(shape), classes, seed);
  return std::make_shared<const TensorDataset>(
      TensorDataset{shape, std::move(batch.pixels), std::move(batch.labels)});
}

}  // namespace sweep::test
