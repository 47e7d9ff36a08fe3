// Ops that compute each output element from one element of each input: activations, dropout, residual sums.
#include "core/kernels/cuda/kernels/elementwise.h"

#include <cmath>

#include "core/kernels/cuda/ops/layer_ops.h"

namespace sweep::cuda {
namespace {

int elements_of(const Shape& shape) { return static_cast<int>(element_count(shape)); }

class ActivationOp final : public Op {
 public:
  ActivationOp(const layers::Activated& activated, const LayerPlace& place)
      : activated_(activated), elements_(elements_of(place.layer.input)), slots_(place.slots) {}

  void forward(const Pass& pass) const override {
    activation_forward(pass.stream, activated_.function, activated_.coefficient, pass.images * elements_,
                       pass.data(slots_.in), pass.data(slots_.out));
  }

  void backward(const Pass& pass) const override {
    activation_backward(pass.stream, activated_.function, activated_.coefficient, pass.images * elements_,
                        pass.data(slots_.grad_out), pass.data(slots_.in), pass.data(slots_.out), slots_.add,
                        pass.data(slots_.grad_in));
  }

 private:
  layers::Activated activated_;
  int elements_;
  OpSlots slots_;
};

class DropoutOp final : public Op {
 public:
  DropoutOp(const layers::Dropout& dropout, const LayerPlace& place)
      : rule_{.seed = place.seed,
              .number = place.dropouts,
              .threshold = static_cast<std::uint64_t>(std::ldexp(dropout.p, 32)),
              .kept = dropout.p < 1 ? static_cast<float>(1 / (1 - dropout.p)) : 0.0f},
        elements_(elements_of(place.layer.input)),
        slots_(place.slots) {}

  void forward(const Pass& pass) const override {
    if (pass.training) {
      dropout(pass.stream, rule_of(pass), pass.input, pass.images, elements_, pass.data(slots_.in), false,
              pass.data(slots_.out));
    } else {
      copy_or_add(pass.stream, pass.images * elements_, pass.data(slots_.in), false, pass.data(slots_.out));
    }
  }

  void backward(const Pass& pass) const override {
    dropout(pass.stream, rule_of(pass), pass.input, pass.images, elements_, pass.data(slots_.grad_out),
            slots_.add, pass.data(slots_.grad_in));
  }

 private:
  DropoutRule rule_of(const Pass& pass) const {
    DropoutRule rule = rule_;
    rule.first_image = static_cast<std::uint32_t>(pass.first_image);
    return rule;
  }

  DropoutRule rule_;
  int elements_;
  OpSlots slots_;
};

// The sum of two inputs at the end of a residual block.
class SumOp final : public Op {
 public:
  explicit SumOp(const LayerPlace& place)
      : elements_(elements_of(place.layer.output)), inputs_{place.slots, place.second} {}

  void forward(const Pass& pass) const override {
    add(pass.stream, pass.images * elements_, pass.data(inputs_[0].in), pass.data(inputs_[1].in),
        pass.data(inputs_[0].out));
  }

  void backward(const Pass& pass) const override {
    for (const OpSlots& input : inputs_) {
      if (!input.grad_in) continue;
      copy_or_add(pass.stream, pass.images * elements_, pass.data(inputs_[0].grad_out), input.add,
                  pass.data(input.grad_in));
    }
  }

 private:
  int elements_;
  OpSlots inputs_[2];
};

}  // namespace

std::unique_ptr<Op> make_layer_op(const layers::Activated& activated, const LayerPlace& place) {
  return std::make_unique<ActivationOp>(activated, place);
}
std::unique_ptr<Op> make_layer_op(const layers::Dropout& dropout, const LayerPlace& place) {
  return std::make_unique<DropoutOp>(dropout, place);
}
std::unique_ptr<Op> make_layer_op(const layers::Sum&, const LayerPlace& place) {
  return std::make_unique<SumOp>(place);
}

}  // namespace sweep::cuda
