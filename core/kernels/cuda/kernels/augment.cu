#include "core/kernels/cuda/kernels/augment.h"

#include "core/kernels/cuda/runtime/kernel.h"

namespace sweep::cuda {
namespace {

// Pixels of an image per thread, about: a few images alone would not fill a GPU.
constexpr int kPixelsPerThread = 4;
constexpr int kMaxParts = 64;

int parts_of(const AugmentPlan& plan) {
  const int parts = ceil_div(plan.height * plan.width, static_cast<int>(kThreads) * kPixelsPerThread);
  return parts < kMaxParts ? parts : kMaxParts;
}

// `from`: the sample; `to`: the image of the batch.
template <class T>
__device__ void change_image(const T* from, T* to, const AugmentChange* changes, const AugmentPlan& plan,
                             int part, int parts) {
  const int plane = plan.height * plan.width;
  for (int i = part * static_cast<int>(kThreads) + static_cast<int>(threadIdx.x); i < plane;
       i += parts * static_cast<int>(kThreads)) {
    int y = i / plan.width, x = i % plan.width;
    const bool visible = find_source(changes, plan.count, plan.height, plan.width, y, x);
    for (int c = 0; c < plan.channels; ++c)
      to[c * plane + i] = visible ? from[c * plane + y * plan.width + x] : T{0};
  }
}

template <class T>
__device__ void copy_targets(const T* from, std::byte* targets, std::uint32_t row, int image, int count) {
  T* to = reinterpret_cast<T*>(targets) + static_cast<std::size_t>(image) * static_cast<std::size_t>(count);
  const T* first = from + static_cast<std::size_t>(row) * static_cast<std::size_t>(count);
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(kThreads)) to[i] = first[i];
}

// Grid: images x parts blocks of 256 threads. The first threads of each draw the image's changes, which are
// then followed back from each pixel of the result to the one pixel of the sample that it comes from.
__global__ void augment_kernel(const StepInput* input, const std::uint32_t* rows,
                               const std::uint32_t* numbers, int parts, AugmentPlan plan,
                               AugmentedBatch batch) {
  __shared__ AugmentChange changes[kMaxAugmentSteps];
  const int image = static_cast<int>(blockIdx.x) / parts, part = static_cast<int>(blockIdx.x) % parts;
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < plan.count) {
    const AugmentKey key{plan.seed, plan.repeat, input->epoch, numbers[image]};
    changes[thread] =
        draw_change(plan.steps[thread], static_cast<std::size_t>(thread), key, plan.height, plan.width);
  }
  __syncthreads();
  const auto values = static_cast<std::size_t>(plan.channels * plan.height * plan.width);
  const std::size_t from = rows[image] * values, to = static_cast<std::size_t>(image) * values;
  if (input->floats != nullptr) {
    change_image(input->floats + from, reinterpret_cast<float*>(batch.samples) + to, changes, plan, part,
                 parts);
  } else {
    change_image(input->pixels + from, reinterpret_cast<std::uint8_t*>(batch.samples) + to, changes, plan,
                 part, parts);
  }
  if (part > 0) return;
  if (input->numbers != nullptr) {
    copy_targets(input->numbers, batch.targets, rows[image], image, plan.targets);
  } else {
    copy_targets(input->labels, batch.targets, rows[image], image, 1);
  }
  if (thread > 0) return;
  batch.rows[image] = static_cast<std::uint32_t>(image);
  if (image > 0) return;
  StepInput made = *input;
  if (made.floats != nullptr) made.floats = reinterpret_cast<const float*>(batch.samples);
  if (made.pixels != nullptr) made.pixels = reinterpret_cast<const std::uint8_t*>(batch.samples);
  if (made.numbers != nullptr) made.numbers = reinterpret_cast<const float*>(batch.targets);
  if (made.labels != nullptr) made.labels = reinterpret_cast<const std::int32_t*>(batch.targets);
  *batch.input = made;
}

}  // namespace

void augment_samples(Stream& stream, const StepInput* input, const std::uint32_t* rows,
                     const std::uint32_t* numbers, int images, const AugmentPlan& plan,
                     const AugmentedBatch& batch) {
  const int parts = parts_of(plan);
  launch(stream, augment_kernel, {static_cast<unsigned>(images * parts)}, {{kThreads}}, input, rows, numbers,
         parts, plan, batch);
}

}  // namespace sweep::cuda
