#include "core/kernels/cuda/pixels.h"

#include "core/kernels/cuda/kernel.h"

namespace sweep::cuda {
namespace {

__global__ void load_pixels_kernel(const StepInput* input, const std::uint32_t* rows, int images,
                                   int channels, int plane, const float* mean, const float* std, float* out) {
  const int sample = channels * plane;
  const std::uint8_t* pixels = input->pixels;
  for_each_index(images * sample, [=](int i) {
    const int element = i % sample;
    const std::size_t row = rows[i / sample];
    float x = static_cast<float>(pixels[row * static_cast<std::size_t>(sample) + element]) / 255.0f;
    if (mean != nullptr) x = (x - mean[element / plane]) / std[element / plane];
    out[i] = x;
  });
}

}  // namespace

void load_pixels(Stream& stream, const StepInput* input, const std::uint32_t* rows, int images, int channels,
                 int plane, const float* mean, const float* std, float* out) {
  launch(stream, load_pixels_kernel, blocks_for(images * channels * plane), {kThreads}, input, rows, images,
         channels, plane, mean, std, out);
}

}  // namespace sweep::cuda
