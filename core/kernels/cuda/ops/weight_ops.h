// Ops with parameters.
#pragma once

#include "core/kernels/cuda/kernels/batch_norm.h"
#include "core/kernels/cuda/kernels/conv.h"
#include "core/kernels/cuda/kernels/linear.h"
#include "core/kernels/cuda/libraries/kernel_chooser.h"
#include "core/kernels/cuda/ops/library_share.h"
#include "core/kernels/cuda/ops/op.h"
#include "core/network/network.h"

namespace sweep::cuda {

/// Where an op's parameters start in Network::parameters(), in floats; -1: there are none. The bias follows
/// the weight.
struct ParameterPlaces {
  int weight = -1, bias = -1;
};

ParameterPlaces parameter_places(const Network& network, const Layer& layer);

class ConvOp final : public Op {
 public:
  ConvOp(const Network& network, const Layer& layer, bool relu, const OpSlots& slots, const OpTimes& times,
         MemoryPlan& plan, KernelChooser& chooser);
  void prepare(int images) override { library_.prepare(images); }
  void forward(const Pass& pass) const override;
  void backward(const Pass& pass) const override;
  std::vector<PartialGradient> gradients() const override;

 private:
  ConvShape shape_;
  ParameterPlaces places_;
  bool relu_;
  int outputs_;  // of one image
  OpSlots slots_;
  LibraryShare<ConvShape> library_;
  int parts_;
  Slot partials_;
};

class LinearOp final : public Op {
 public:
  LinearOp(const Network& network, const Layer& layer, bool relu, const OpSlots& slots, const OpTimes& times,
           MemoryPlan& plan, KernelChooser& chooser);
  void prepare(int images) override { library_.prepare(images); }
  void forward(const Pass& pass) const override;
  void backward(const Pass& pass) const override;
  std::vector<PartialGradient> gradients() const override;

 private:
  LinearShape shape_;
  ParameterPlaces places_;
  bool relu_;
  OpSlots slots_;
  LibraryShare<LinearShape> library_;
  int parts_;
  Slot partials_;
};

class BatchNormOp final : public Op {
 public:
  BatchNormOp(const Network& network, const Layer& layer, const OpSlots& slots, const OpTimes& times,
              MemoryPlan& plan, KernelChooser& chooser);
  void prepare(int images) override { library_.prepare(images); }
  void forward(const Pass& pass) const override;
  void backward(const Pass& pass) const override;
  std::vector<PartialGradient> gradients() const override;

 private:
  std::vector<LibraryTask> chosen_works(const Layer& layer, const OpTimes& times,
                                        KernelChooser& chooser) const;
  bool trains_by_library(int images) const;

  BatchNormShape shape_;
  ParameterPlaces places_;
  std::size_t running_mean_, running_var_;  // places in the buffers
  OpSlots slots_;
  LibraryShare<BatchNormShape> library_;
  Slot mean_, inverse_, forward_scratch_, backward_scratch_, gradient_;
};

}  // namespace sweep::cuda
