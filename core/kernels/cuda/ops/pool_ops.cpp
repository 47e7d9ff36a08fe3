// Pooling layers.
#include "core/kernels/cuda/kernels/pool.h"
#include "core/kernels/cuda/ops/layer_ops.h"

namespace sweep::cuda {
namespace {

// `window`: nullptr of adaptive pooling.
PoolShape pool_shape(const Layer& layer, const layers::Window* window) {
  PoolShape s{};
  s.channels = size(layer.input[0]);
  s.in_height = size(layer.input[1]);
  s.in_width = size(layer.input[2]);
  s.out_height = size(layer.output[1]);
  s.out_width = size(layer.output[2]);
  if (window == nullptr) return s;
  s.kernel_height = size(window->kernel_size[0]);
  s.kernel_width = size(window->kernel_size[1]);
  s.stride_y = size(window->stride[0]);
  s.stride_x = size(window->stride[1]);
  s.pad_y = size(window->padding[0]);
  s.pad_x = size(window->padding[1]);
  return s;
}

class MaxPoolOp final : public Op {
 public:
  MaxPoolOp(const layers::MaxPool2d& pool, const LayerPlace& place)
      : shape_(pool_shape(place.layer, &pool)),
        slots_(place.slots),
        argmax_(place.plan.add_rows(static_cast<std::size_t>(place.schedule.images),
                                    element_count(place.layer.output) * sizeof(std::int32_t),
                                    place.schedule.forward, place.schedule.backward)) {}

  void forward(const Pass& pass) const override {
    max_pool_forward(pass.stream, shape_, pass.images, pass.data(slots_.in), pass.data(slots_.out),
                     pass.data<std::int32_t>(argmax_));
  }

  void backward(const Pass& pass) const override {
    max_pool_backward(pass.stream, shape_, pass.images, pass.data(slots_.grad_out),
                      pass.data<std::int32_t>(argmax_), slots_.add, pass.data(slots_.grad_in));
  }

 private:
  PoolShape shape_;
  OpSlots slots_;
  Slot argmax_;
};

class AvgPoolOp final : public Op {
 public:
  AvgPoolOp(const layers::AvgPool2d* pool, const LayerPlace& place)
      : shape_(pool_shape(place.layer, pool)),
        with_padding_(pool != nullptr && pool->count_include_pad),
        slots_(place.slots) {}

  void forward(const Pass& pass) const override {
    avg_pool_forward(pass.stream, shape_, with_padding_, pass.images, pass.data(slots_.in),
                     pass.data(slots_.out));
  }

  void backward(const Pass& pass) const override {
    avg_pool_backward(pass.stream, shape_, with_padding_, pass.images, pass.data(slots_.grad_out), slots_.add,
                      pass.data(slots_.grad_in));
  }

 private:
  PoolShape shape_;
  bool with_padding_;
  OpSlots slots_;
};

}  // namespace

std::unique_ptr<Op> make_layer_op(const layers::MaxPool2d& pool, const LayerPlace& place) {
  return std::make_unique<MaxPoolOp>(pool, place);
}
std::unique_ptr<Op> make_layer_op(const layers::AvgPool2d& pool, const LayerPlace& place) {
  return std::make_unique<AvgPoolOp>(&pool, place);
}
std::unique_ptr<Op> make_layer_op(const layers::AdaptiveAvgPool2d&, const LayerPlace& place) {
  return std::make_unique<AvgPoolOp>(nullptr, place);
}

}  // namespace sweep::cuda
