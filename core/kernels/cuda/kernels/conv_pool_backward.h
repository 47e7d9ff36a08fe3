// Which convolutions the backward kernel of conv_pool.h can do, and what it needs for that.
#pragma once

#include <cstddef>

#include "core/kernels/cuda/kernels/conv_pool.h"

namespace sweep::cuda {

/// Whether conv_pool_backward() has the threads and registers for a convolution.
bool conv_pool_backward_fits(const ConvPoolShape& shape);

/// Bytes of shared memory that conv_pool_backward() needs; `input_gradient`: with grad_in.
std::size_t conv_pool_backward_bytes(const ConvPoolChain& chain, bool input_gradient);

}  // namespace sweep::cuda
