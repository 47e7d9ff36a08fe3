#include "core/kernels/cuda/ops/elementwise_ops.h"

#include <cmath>

namespace sweep::cuda {
namespace {

int elements_of(const Shape& shape) { return static_cast<int>(element_count(shape)); }

DropoutRule dropout_rule(const Layer& layer, std::uint64_t seed, std::uint32_t number) {
  const double p = std::get<layers::Dropout>(layer.kind).p;
  return {.seed = seed,
          .number = number,
          .threshold = static_cast<std::uint64_t>(std::ldexp(p, 32)),
          .kept = p < 1 ? static_cast<float>(1 / (1 - p)) : 0.0f};
}

}  // namespace

ActivationOp::ActivationOp(const Layer& layer, const OpSlots& slots)
    : activation_(std::get<layers::Activated>(layer.kind).function),
      coefficient_(std::get<layers::Activated>(layer.kind).coefficient),
      elements_(elements_of(layer.input)),
      slots_(slots) {}

void ActivationOp::forward(const Pass& pass) const {
  activation_forward(pass.stream, activation_, coefficient_, pass.images * elements_, pass.data(slots_.in),
                     pass.data(slots_.out));
}

void ActivationOp::backward(const Pass& pass) const {
  activation_backward(pass.stream, activation_, coefficient_, pass.images * elements_,
                      pass.data(slots_.grad_out), pass.data(slots_.in), pass.data(slots_.out), slots_.add,
                      pass.data(slots_.grad_in));
}

DropoutOp::DropoutOp(const Layer& layer, std::uint64_t seed, std::uint32_t number, const OpSlots& slots)
    : rule_(dropout_rule(layer, seed, number)), elements_(elements_of(layer.input)), slots_(slots) {}

DropoutRule DropoutOp::rule_of(const Pass& pass) const {
  DropoutRule rule = rule_;
  rule.first_image = static_cast<std::uint32_t>(pass.first_image);
  return rule;
}

void DropoutOp::forward(const Pass& pass) const {
  if (pass.training) {
    dropout(pass.stream, rule_of(pass), pass.input, pass.images, elements_, pass.data(slots_.in), false,
            pass.data(slots_.out));
  } else {
    copy_or_add(pass.stream, pass.images * elements_, pass.data(slots_.in), false, pass.data(slots_.out));
  }
}

void DropoutOp::backward(const Pass& pass) const {
  dropout(pass.stream, rule_of(pass), pass.input, pass.images, elements_, pass.data(slots_.grad_out),
          slots_.add, pass.data(slots_.grad_in));
}

SumOp::SumOp(const Layer& layer, Input first, Input second, Slot out, Slot grad_out)
    : elements_(elements_of(layer.output)), inputs_{first, second}, out_(out), grad_out_(grad_out) {}

void SumOp::forward(const Pass& pass) const {
  add(pass.stream, pass.images * elements_, pass.data(inputs_[0].value), pass.data(inputs_[1].value),
      pass.data(out_));
}

void SumOp::backward(const Pass& pass) const {
  for (const Input& input : inputs_) {
    if (!input.gradient) continue;
    copy_or_add(pass.stream, pass.images * elements_, pass.data(grad_out_), input.add,
                pass.data(input.gradient));
  }
}

}  // namespace sweep::cuda
