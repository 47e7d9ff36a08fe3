// Networks that several tests train.
#pragma once

#include "core/base/random.h"
#include "core/data/data_loader.h"
#include "core/network/network.h"
#include "tests/support/test.h"

namespace sweep::test {

inline LayerSpec layer(std::string name, std::string type, Arguments arguments = {}) {
  return {std::move(name), std::move(type), std::move(arguments)};
}
inline LayerSpec conv(std::string name, std::int64_t channels, std::int64_t kernel, Arguments more = {}) {
  more.insert({{"out_channels", channels}, {"kernel_size", kernel}});
  return layer(std::move(name), "conv2d", std::move(more));
}
inline LayerSpec linear(std::string name, std::int64_t features) {
  return layer(std::move(name), "linear", {{"out_features", features}});
}
inline LayerSpec relu(std::string name) { return layer(std::move(name), "relu"); }
inline LayerSpec pool(std::string name, std::int64_t kernel) {
  return layer(std::move(name), "max_pool2d", {{"kernel_size", kernel}});
}
inline LayerSpec norm(std::string name, Arguments arguments = {}) {
  return layer(std::move(name), "batch_norm2d", std::move(arguments));
}
/// Average pooling to `size` x `size`.
inline LayerSpec average(std::int64_t size) {
  return layer("average", "adaptive_avg_pool2d", {{"output_size", size}});
}
inline LayerSpec dropout(double p) { return layer("dropout", "dropout", {{"p", p}}); }
inline LayerSpec flatten(std::string name) { return layer(std::move(name), "flatten"); }
inline LayerSpec residual(std::string name, std::vector<LayerSpec> layers,
                          std::vector<LayerSpec> shortcut = {}) {
  return {std::move(name), "residual", {}, std::move(layers), std::move(shortcut)};
}

/// The Fashion-MNIST network of the deeplizard series.
inline NetworkSpec deeplizard() {
  return {"deeplizard",
          {conv("conv1", 6, 5), relu("relu1"), pool("pool1", 2), conv("conv2", 12, 5), relu("relu2"),
           pool("pool2", 2), flatten("flatten"), linear("fc1", 120), relu("relu3"), linear("fc2", 60),
           relu("relu4"), linear("out", 10)}};
}

/// The network with dropout in front of its last layer.
inline NetworkSpec with_dropout(NetworkSpec network) {
  network.layers.insert(network.layers.end() - 1, dropout(0.3));
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
    return conv(std::move(name), channels, kernel,
                {{"stride", stride}, {"padding", kernel / 2}, {"bias", false}});
  };
  const std::int64_t wide = 2 * narrow;
  return {"small-residual",
          {conv_of("stem", narrow, 3, 1), norm("bn"), relu("relu"),
           residual("block1", {conv_of("conv1", narrow, 3, 1), norm("bn1"), relu("relu"),
                               conv_of("conv2", narrow, 3, 1), norm("bn2")}),
           relu("relu1"),
           residual("block2",
                    {conv_of("conv1", wide, 3, 2), norm("bn1"), relu("relu"), conv_of("conv2", wide, 3, 1),
                     norm("bn2")},
                    {conv_of("conv", wide, 1, 2), norm("bn")}),
           relu("relu2"), average(1), flatten("flatten"), linear("out", 10)}};
}

/// 3×3 convolutions of many channels, as the CPU engine does by Winograd's algorithm: with and without
/// padding, groups, bias and a ReLU behind them; for images of 12×10 or more.
inline NetworkSpec wide_convolutions() {
  const std::int64_t one = 1, two = 2;
  return {"wide-convolutions",
          {conv("stem", 17, 3, {{"padding", one}}), relu("relu1"),
           conv("odd", 32, 3, {{"padding", std::array<std::int64_t, 2>{2, 0}}}), relu("relu2"),
           conv("groups", 34, 3, {{"groups", two}, {"bias", false}}),
           conv("plain", 19, 3, {{"padding", one}}), average(2), flatten("flatten"), linear("out", 10)}};
}

/// A convolution whose activation is not one that the engines compute with it.
inline NetworkSpec unfused_cnn() {
  return {"unfused",
          {conv("conv", 5, 3), layer("leaky", "leaky_relu"), dropout(0.2), flatten("flatten"),
           linear("fc1", 40), layer("tanh", "tanh"), linear("out", 10)}};
}

/// Batch normalization of the input, without parameters and with gradients for nobody, and twice of a
/// convolution whose input others also read.
inline NetworkSpec norm_first() {
  return {"norm-first",
          {norm("bare", {{"affine", false}}), conv("conv1", 4, 3),
           residual("block", {norm("bn1"), relu("relu"), conv("conv2", 4, 1)}), norm("bn2"), dropout(0.2),
           flatten("flatten"), linear("out", 10)}};
}

/// A shortcut past two stages, one that begins at the input, and a first layer without parameters.
inline NetworkSpec long_shortcuts() {
  const auto same = [](std::string name) {
    return conv(std::move(name), 3, 3, {{"padding", std::int64_t{1}}});
  };
  return {
      "shortcuts",
      {residual("first", {same("a"), layer("tanh", "tanh"), same("b"), norm("norm")}),
       residual("second", {same("c"), layer("leaky", "leaky_relu"), same("d"), relu("relu"), same("e")}),
       dropout(0.2), flatten("flatten"), linear("fc", 20), layer("sigmoid", "sigmoid"), linear("out", 10)}};
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
