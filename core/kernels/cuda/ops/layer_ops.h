// The ops of single layers, one for each kind.
#pragma once

#include <memory>

#include "core/kernels/cuda/libraries/kernel_rule.h"
#include "core/kernels/cuda/ops/op.h"
#include "core/network/network.h"

namespace sweep::cuda {

/// What an op is made of, besides the value of its layer.
struct LayerPlace {
  const Network& network;
  const Layer& layer;
  bool relu;  // whether a relu follows that the op also computes: after a convolution or linear layer
  OpSlots slots;
  OpSlots second;  // of a sum: in, grad_in and add of its second input
  OpSchedule schedule;
  MemoryPlan& plan;
  KernelRule& rule;
  std::uint64_t seed;          // of dropout
  std::uint32_t dropouts = 0;  // dropout layers before this one: each draws other random numbers
};

/// An extent as kernels have it.
inline int size(std::int64_t extent) { return static_cast<int>(extent); }

std::unique_ptr<Op> make_layer_op(const layers::Conv2d&, const LayerPlace& place);
std::unique_ptr<Op> make_layer_op(const layers::Linear&, const LayerPlace& place);
std::unique_ptr<Op> make_layer_op(const layers::BatchNorm2d& norm, const LayerPlace& place);
std::unique_ptr<Op> make_layer_op(const layers::MaxPool2d& pool, const LayerPlace& place);
std::unique_ptr<Op> make_layer_op(const layers::AvgPool2d& pool, const LayerPlace& place);
std::unique_ptr<Op> make_layer_op(const layers::AdaptiveAvgPool2d&, const LayerPlace& place);
std::unique_ptr<Op> make_layer_op(const layers::Dropout& dropout, const LayerPlace& place);
std::unique_ptr<Op> make_layer_op(const layers::Activated& activated, const LayerPlace& place);
std::unique_ptr<Op> make_layer_op(const layers::Sum&, const LayerPlace& place);

}  // namespace sweep::cuda
