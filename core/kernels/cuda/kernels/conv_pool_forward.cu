#include "core/kernels/cuda/kernels/conv_pool.h"

#include "core/kernels/cuda/kernels/conv_pool_forward.h"
#include "core/kernels/cuda/kernels/sum_order.h"

namespace sweep::cuda {
namespace {

struct ForwardKernel {
  static constexpr unsigned kMaxThreads = kConvThreads;
  conv_pool::ForwardImages convolutions;
  bool loads_weights_early;

  __device__ void load_early() const {
    if (loads_weights_early) convolutions.load_weights(dynamic_shared<float>());
  }
  __device__ void operator()() const {
    auto* shared = dynamic_shared<float>();
    if (!loads_weights_early) convolutions.load_weights(shared);
    convolutions.load_first_image(shared);
    wait_for_copies();
    convolutions.run(shared);
  }
};

}  // namespace

bool conv_pool_fits(const ConvPoolChain& chain) {
  for (int l = 0; l < chain.count; ++l) {
    const ConvPoolShape& s = chain.shapes[l];
    if (s.pool_height <= 0 || s.pool_width <= 0 || !conv_pool_backward_fits(s)) return false;
  }
  return conv_pool::forward_bytes(chain) <= kSharedBytes &&
         conv_pool_backward_bytes(chain, true) <= kSharedBytes;
}

void conv_pool_forward(Stream& stream, const ConvPoolChain& chain, int images, const ConvPoolInput& in,
                       const ConvPoolArrays* arrays) {
  const int blocks = images < kResidentConvBlocks ? images : kResidentConvBlocks;
  launch_functor(stream,
                 ForwardKernel{{chain, images, in, arrays}, stream.may_load_early(Changes::kParameters)},
                 {static_cast<unsigned>(blocks)}, {{kConvThreads}, conv_pool::forward_bytes(chain)});
}

}  // namespace sweep::cuda
