#include "core/kernels/cuda/kernels/pixels.h"

#include "core/kernels/cuda/kernels/pixel_value.h"

namespace sweep::cuda {
namespace {

// Grid: blocks_for(values) blocks of 256 threads, a thread per value.
__global__ void load_samples_kernel(const StepInput* input, const std::uint32_t* rows, int images, int values,
                                    int plane, Normalisation normalisation, float* out) {
  for_each_index(images * values, [=](int i) {
    out[i] = BatchSample(*input, rows[i / values], values).value(i % values, plane, normalisation);
  });
}

}  // namespace

void load_samples(Stream& stream, const StepInput* input, const std::uint32_t* rows, int images, int channels,
                  int plane, const Normalisation& normalisation, float* out) {
  launch(stream, load_samples_kernel, blocks_for(images * channels * plane), {kThreads}, input, rows, images,
         channels * plane, plane, normalisation, out);
}

}  // namespace sweep::cuda
