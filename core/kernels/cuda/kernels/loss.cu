#include "core/kernels/cuda/kernels/loss.h"

#include "core/kernels/cuda/kernels/sample_loss.h"
#include "core/kernels/cuda/runtime/kernel.h"

namespace sweep::cuda {
namespace {

// Loss of one sample, in nats. peak: its largest output. scale: of the gradient. gradient [outputs] or
// nullptr.
__device__ float cross_entropy(const SampleLoss& loss, const float* outputs, int label, float peak,
                               float scale, float* gradient) {
  float total = 0.0f, sum = 0.0f;
  for (int c = 0; c < loss.outputs; ++c) {
    total += expf(outputs[c] - peak);
    sum += outputs[c] - peak;
  }
  if (gradient != nullptr) {
    const float targets = loss.target_sum(label);
    for (int c = 0; c < loss.outputs; ++c)
      gradient[c] = (expf(outputs[c] - peak) / total * targets - loss.class_target(c, label)) * scale;
  }
  return loss.cross_entropy(outputs, 1, peak, label, sum, logf(total));
}

__device__ float pointwise(const SampleLoss& loss, const float* outputs, const SampleTarget& target,
                           float scale, float* gradient) {
  float sum = 0.0f;
  for (int c = 0; c < loss.outputs; ++c) {
    const float number = loss.number(target, c);
    sum += loss.value(outputs[c], number);
    if (gradient != nullptr) gradient[c] = loss.slope(outputs[c], number) * (loss.per_output() * scale);
  }
  return sum * loss.per_output();
}

// Grid: a block of 256 threads per 256 samples, a thread per sample. Each block adds to its own totals:
// nothing is shared between blocks, and the host adds the blocks up in order.
__global__ void loss_kernel(SampleLoss loss, const StepInput* input, const std::uint32_t* rows, int images,
                            const float* outputs, Totals* totals, float* grad_outputs) {
  const auto image = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
  const int first = static_cast<int>(blockIdx.x * kThreads);
  SampleSums sums;
  if (image < images) {
    const SampleTarget target(*input, rows[image], loss.outputs);
    const std::ptrdiff_t start = static_cast<std::ptrdiff_t>(image) * loss.outputs;
    const float* sample = outputs + start;
    float* gradient = grad_outputs == nullptr ? nullptr : grad_outputs + start;
    const float scale = input->gradient_scale;
    const Maximum best = largest(sample, loss.outputs);
    sums.loss =
        static_cast<double>(loss.is_cross_entropy()
                                ? cross_entropy(loss, sample, target.label, best.value, scale, gradient)
                                : pointwise(loss, sample, target, scale, gradient)) *
        input->loss_scale;
    loss.count(sample, 1, best, target, sums);
  }
  SampleSums block;
  block.loss = block_sum(sums.loss);
  block.correct = block_sum(sums.correct);
  const bool is_regression = input->numbers != nullptr;
  if (is_regression) {
    block.absolute_error = block_sum(sums.absolute_error);
    block.squared_error = block_sum(sums.squared_error);
  } else if (loss.counts_top()) {
    block.in_top = block_sum(sums.in_top);
  }
  if (threadIdx.x > 0) return;
  const int last = first + static_cast<int>(kThreads);
  loss.add(block, (last < images ? last : images) - first, is_regression, totals[blockIdx.x]);
}

}  // namespace

int loss_totals_count(int images) { return ceil_div(images, static_cast<int>(kThreads)); }

void loss(Stream& stream, const LossParameters& parameters, const StepInput* input, const std::uint32_t* rows,
          int images, int count, const float* outputs, Totals* totals, float* grad_outputs) {
  launch(stream, loss_kernel, {static_cast<unsigned>(loss_totals_count(images))}, {kThreads},
         SampleLoss{parameters, count}, input, rows, images, outputs, totals, grad_outputs);
}

}  // namespace sweep::cuda
