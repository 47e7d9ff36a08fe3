#include "core/kernels/cuda/kernels/loss.h"

#include "core/kernels/cuda/kernels/sample_loss.h"
#include "core/kernels/cuda/runtime/kernel.h"

namespace sweep::cuda {
namespace {

// Loss of one sample, in nats. peak: its largest output. scale: one over the batch size. gradient [classes]
// or nullptr.
__device__ float cross_entropy(const SampleLoss& loss, const float* outputs, int label, float peak,
                               float scale, float* gradient) {
  float total = 0.0f, sum = 0.0f;
  for (int c = 0; c < loss.classes; ++c) {
    total += expf(outputs[c] - peak);
    sum += outputs[c] - peak;
  }
  if (gradient != nullptr) {
    for (int c = 0; c < loss.classes; ++c)
      gradient[c] = (expf(outputs[c] - peak) / total - loss.target(c, label)) * scale;
  }
  return loss.cross_entropy(outputs[label] - peak, sum, logf(total));
}

__device__ float squared_error(const SampleLoss& loss, const float* outputs, int label, float scale,
                               float* gradient) {
  float sum = 0.0f;
  for (int c = 0; c < loss.classes; ++c) {
    const float error = loss.error(outputs[c], c, label);
    sum += error * error;
    if (gradient != nullptr) gradient[c] = error * (2.0f * loss.per_class() * scale);
  }
  return sum * loss.per_class();
}

// Grid: a block of 256 threads per 256 samples, a thread per sample. Each block adds to its own totals:
// nothing is shared between blocks, and the host adds the blocks up in order.
__global__ void loss_kernel(SampleLoss loss, const StepInput* input, const std::uint32_t* rows, int images,
                            const float* outputs, DeviceTotals* totals, float* grad_outputs) {
  const auto image = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
  const int first = static_cast<int>(blockIdx.x * kThreads);
  double nats = 0;
  int correct = 0;
  if (image < images) {
    const int label = input->labels[rows[image]];
    const float* sample = outputs + static_cast<std::ptrdiff_t>(image) * loss.classes;
    float* gradient =
        grad_outputs == nullptr ? nullptr : grad_outputs + static_cast<std::ptrdiff_t>(image) * loss.classes;
    const float scale = 1.0f / static_cast<float>(images);
    const Maximum best = largest(sample, loss.classes);
    nats = static_cast<double>(loss.kind == LossOptions::Kind::kMse
                                   ? squared_error(loss, sample, label, scale, gradient)
                                   : cross_entropy(loss, sample, label, best.value, scale, gradient));
    correct = best.index == label ? 1 : 0;
  }
  const double block_loss = block_sum(nats);
  const int block_correct = block_sum(correct);
  if (threadIdx.x > 0) return;
  DeviceTotals& total = totals[blockIdx.x];
  total.loss += block_loss;
  total.correct += block_correct;
  total.samples += images - first < static_cast<int>(kThreads) ? images - first : static_cast<int>(kThreads);
}

}  // namespace

int loss_totals_count(int images) { return ceil_div(images, static_cast<int>(kThreads)); }

void loss(Stream& stream, const LossOptions& options, const StepInput* input, const std::uint32_t* rows,
          int images, int classes, const float* outputs, DeviceTotals* totals, float* grad_outputs) {
  launch(stream, loss_kernel, {static_cast<unsigned>(loss_totals_count(images))}, {kThreads},
         SampleLoss(options, classes), input, rows, images, outputs, totals, grad_outputs);
}

}  // namespace sweep::cuda
