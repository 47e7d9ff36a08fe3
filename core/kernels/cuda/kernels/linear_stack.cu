// Grid: up to kStackBlocks blocks of 512 threads. A block loads the weights of all layers to dynamic shared
// memory once, and then takes tiles of samples in turns (linear_stack_kernel.h). It passes a tile forward
// through all layers, computes its losses and their gradient, and passes the gradient back. Where other
// layers follow, on another device, the gradient comes from them, and the outputs are computed once more. The
// weight gradients are a kernel of their own (linear_backward_weights), because they are sums over samples of
// all blocks.
#include "core/kernels/cuda/kernels/linear_stack.h"

#include "core/kernels/cuda/kernels/linear_stack_kernel.h"
#include "core/kernels/cuda/kernels/sum_order.h"

namespace sweep::cuda {
namespace {

struct StackKernel {
  static constexpr unsigned kMaxThreads = kStackThreads, kResidentBlocks = 1;
  StackTiles<kQuad> tiles;

  __device__ void operator()() const {
    auto* shared = dynamic_shared<float>();
    tiles.load_weights(shared);
    tiles.run(shared);
  }
};

}  // namespace

bool linear_stack_fits(const LinearStackShape& shape, std::size_t shared_bytes) {
  std::size_t weights = 0;  // checked first: huge layers would overflow the ints of the layout
  for (int l = 0; l < shape.count; ++l)
    weights += static_cast<std::size_t>(shape.layers[l].inputs) *
               static_cast<std::size_t>(shape.layers[l].outputs) * sizeof(float);
  return weights <= shared_bytes && stack_bytes(shape, kQuad) <= shared_bytes;
}

void linear_stack(Stream& stream, const LinearStackShape& shape, const LinearStackArrays& arrays,
                  const LinearStackPass& pass) {
  // The smallest tile with which no block has to take two; if there is none, the largest that fits.
  const std::size_t limit = shared_bytes_limit();
  int tile = kQuad;
  while (2 * tile <= kMaxTile && ceil_div(pass.images, tile) > kStackBlocks &&
         stack_bytes(shape, 2 * tile) <= limit)
    tile *= 2;
  const int tiles = ceil_div(pass.images, tile), blocks = tiles < kStackBlocks ? tiles : kStackBlocks;
  launch_functor(stream, StackKernel{{shape, arrays, pass, tile}}, {static_cast<unsigned>(blocks)},
                 {{kStackThreads}, stack_bytes(shape, tile)});
}

}  // namespace sweep::cuda
