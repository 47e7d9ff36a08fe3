// Networks that several tests train.
#pragma once

#include "core/network/network.h"

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

/// 784-32-10 for 28×28 images.
inline NetworkSpec mlp() {
  return {"mlp", {flatten("flatten"), linear("fc1", 32), relu("relu1"), linear("out", 10)}};
}

}  // namespace sweep::test
