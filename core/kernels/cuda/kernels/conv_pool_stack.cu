// Grid: a block of 512 threads per image. The stack's weights come while the convolutions are computed, and
// its input stays in shared memory.
#include "core/kernels/cuda/kernels/conv_pool_stack.h"

#include "core/kernels/cuda/kernels/conv_pool_forward.h"
#include "core/kernels/cuda/kernels/linear_stack_kernel.h"

namespace sweep::cuda {
namespace {

// Where the stack's memory begins, in floats: after that of the convolutions.
int stack_start(const ConvPoolChain& chain) {
  return static_cast<int>(conv_pool::forward_bytes(chain) / sizeof(float));
}

std::size_t shared_bytes_of(const ConvPoolChain& chain, const LinearStackShape& stack) {
  return conv_pool::forward_bytes(chain) + stack_bytes(stack, 1);
}

struct ConvPoolStackKernel {
  static constexpr unsigned kMaxThreads = kStackThreads, kResidentBlocks = 1;
  conv_pool::ForwardImages<kStackThreads> convolutions;
  StackTiles<1> stack;
  int start;  // of the stack's memory

  __device__ void operator()() const {
    auto* shared = dynamic_shared<float>();
    convolutions.clear(shared);
    convolutions.load_weights(shared);
    convolutions.load_first_image(shared);
    wait_for_copies();
    stack.load_weights(shared + start);
    convolutions.run(shared);
    stack.run(shared + start, true);
  }
};

}  // namespace

bool conv_pool_stack_fits(const ConvPoolChain& chain, const LinearStackShape& stack,
                          std::size_t shared_bytes) {
  return linear_stack_fits(stack, shared_bytes) && shared_bytes_of(chain, stack) <= shared_bytes;
}

void conv_pool_stack(Stream& stream, const ConvPoolChain& chain, const ConvPoolInput& in,
                     const ConvPoolArrays* arrays, const LinearStackShape& stack,
                     const LinearStackArrays& stack_arrays, const LinearStackPass& pass) {
  ConvPoolStackKernel kernel{.convolutions = {chain, pass.images, in, arrays},
                             .stack = {stack, stack_arrays, pass, 1},
                             .start = stack_start(chain)};
  kernel.convolutions.last_outputs = kernel.start + kernel.stack.layout.values[0];
  launch_functor(stream, kernel, {static_cast<unsigned>(pass.images)},
                 {{kStackThreads}, shared_bytes_of(chain, stack)});
}

}  // namespace sweep::cuda
