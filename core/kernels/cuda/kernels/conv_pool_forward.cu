#include "core/kernels/cuda/kernels/conv_pool_forward.h"

namespace sweep::cuda {
namespace {

struct ForwardKernel {
  static constexpr unsigned kMaxThreads = conv_pool::kThreadCount, kResidentBlocks = 4;
  conv_pool::ForwardImages<conv_pool::kThreadCount> images;

  __device__ void operator()() const {
    auto* shared = dynamic_shared<float>();
    images.clear(shared);
    images.load_weights(shared);
    images.load_first_image(shared);
    wait_for_copies();
    images.run(shared);
  }
};

// What a multiprocessor of every GPU has for a block that asks for it, from compute capability 7.5 on.
constexpr std::size_t kMaxSharedBytes = std::size_t{64} << 10;

}  // namespace

bool conv_pool_fits(const ConvPoolChain& chain, bool input_gradient) {
  for (int l = 0; l < chain.count; ++l) {
    const ConvPoolShape& s = chain.shapes[l];
    if (s.pool_height <= 0 || s.pool_width <= 0 || s.kernel_width != chain.shapes[0].kernel_width ||
        !conv_pool_backward_fits(s))
      return false;
  }
  return conv_pool::forward_bytes(chain) <= kMaxSharedBytes &&
         conv_pool_backward_bytes(chain, input_gradient) <= kMaxSharedBytes;
}

void conv_pool_forward(Stream& stream, const ConvPoolChain& chain, int images, const ConvPoolInput& in,
                       const ConvPoolArrays* arrays) {
  constexpr int kMaxBlocks = static_cast<int>(ForwardKernel::kResidentBlocks) * kMultiprocessors;
  const int blocks = images < kMaxBlocks ? images : kMaxBlocks;
  launch_functor(stream, ForwardKernel{{chain, images, in, arrays}}, {static_cast<unsigned>(blocks)},
                 {{conv_pool::kThreadCount}, conv_pool::forward_bytes(chain)});
}

}  // namespace sweep::cuda
