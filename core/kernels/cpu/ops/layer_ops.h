// Ops of the layers that stay as they are, except for a following ReLU that some of them fuse (`relu`): what
// is not a convolution or a batch normalization.
#pragma once

#include <cstdint>
#include <memory>

#include "core/kernels/cpu/ops/op.h"

namespace sweep::cpu {

/// `layer` is a linear layer of `network`.
std::unique_ptr<Op> make_linear_op(const Network& network, const Layer& layer, bool relu);

/// The sum of two values. backward() leaves in grad_out what is the gradient of both.
std::unique_ptr<Op> make_sum_op(const Layer& layer, bool relu);

/// An activation function that no other op has fused.
std::unique_ptr<Op> make_activation_op(const Layer& layer);

/// torch.nn.Dropout: while training, zeroes each element with probability p and scales the others by 1 / (1 −
/// p). Which ones depends on (seed, layer, step, image in the batch, element) alone. `number` tells the
/// dropout layers of a network apart.
std::unique_ptr<Op> make_dropout_op(const Layer& layer, std::uint32_t number);

/// max_pool2d that no convolution has fused; avg_pool2d and adaptive_avg_pool2d.
std::unique_ptr<Op> make_max_pool_op(const Layer& layer);
std::unique_ptr<Op> make_avg_pool_op(const Layer& layer);

}  // namespace sweep::cpu
