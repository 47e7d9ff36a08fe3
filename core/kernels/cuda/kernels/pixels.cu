#include "core/kernels/cuda/kernels/pixels.h"

#include "core/kernels/cuda/kernels/pixel_value.h"

namespace sweep::cuda {
namespace {

// Grid: blocks_for(values) blocks of 256 threads, a thread per value.
__global__ void load_pixels_kernel(const StepInput* input, const std::uint32_t* rows, int images, int sample,
                                   int plane, Normalisation normalisation, float* out) {
  const std::uint8_t* pixels = input->pixels;
  for_each_index(images * sample, [=](int i) {
    const std::size_t row = rows[i / sample];
    out[i] = pixel_value(pixels + row * static_cast<std::size_t>(sample), i % sample, plane, normalisation);
  });
}

}  // namespace

void load_pixels(Stream& stream, const StepInput* input, const std::uint32_t* rows, int images, int channels,
                 int plane, const Normalisation& normalisation, float* out) {
  launch(stream, load_pixels_kernel, blocks_for(images * channels * plane), {kThreads}, input, rows, images,
         channels * plane, plane, normalisation, out);
}

}  // namespace sweep::cuda
