#include "core/kernels/cuda/loss.h"

#include "core/kernels/cuda/kernel.h"

namespace sweep::cuda {
namespace {

struct Best {
  float value;
  int index;
};

__device__ Best largest(const float* outputs, int classes) {
  Best best{outputs[0], 0};
  for (int c = 1; c < classes; ++c) {
    const float x = outputs[c];
    // As PyTorch: a NaN is the largest of all, and the first of equals wins.
    if (x > best.value || (x != x && best.value == best.value)) best = {x, c};
  }
  return best;
}

// Loss of one sample, in nats. `scale` is one over the batch.
__device__ float cross_entropy(const float* outputs, int classes, int label, float smoothing, float peak,
                               float scale, float* gradient) {
  // The peak is subtracted first, because exp overflows above 88.
  float total = 0.0f, sum = 0.0f;
  for (int c = 0; c < classes; ++c) {
    total += expf(outputs[c] - peak);
    sum += outputs[c] - peak;
  }
  const float log_total = logf(total), everywhere = smoothing / static_cast<float>(classes);
  float nats = log_total - (outputs[label] - peak);
  if (smoothing != 0.0f)  // Σ target · (log total − x)
    nats = (1.0f - smoothing) * nats + (smoothing * log_total - everywhere * sum);
  if (gradient != nullptr) {
    for (int c = 0; c < classes; ++c) {
      const float target = (c == label ? 1.0f - smoothing : 0.0f) + everywhere;
      gradient[c] = (expf(outputs[c] - peak) / total - target) * scale;
    }
  }
  return nats;
}

__device__ float squared_error(const float* outputs, int classes, int label, float scale, float* gradient) {
  const float share = 1.0f / static_cast<float>(classes);
  float sum = 0.0f;
  for (int c = 0; c < classes; ++c) {
    const float error = outputs[c] - (c == label ? 1.0f : 0.0f);
    sum += error * error;
    if (gradient != nullptr) gradient[c] = error * (2.0f * share * scale);
  }
  return sum * share;
}

// A thread per sample; each block writes its sums to a place of its own.
__global__ void loss_kernel(LossOptions::Kind kind, float smoothing, const StepInput* input,
                            const std::uint32_t* rows, int images, int classes, const float* outputs,
                            DeviceTotals* block_totals, float* grad_outputs) {
  const auto image = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
  double nats = 0;
  int correct = 0;
  if (image < images) {
    const int label = input->labels[rows[image]];
    const float* own = outputs + static_cast<std::ptrdiff_t>(image) * classes;
    float* gradient =
        grad_outputs == nullptr ? nullptr : grad_outputs + static_cast<std::ptrdiff_t>(image) * classes;
    const float scale = 1.0f / static_cast<float>(images);
    const Best best = largest(own, classes);
    nats =
        static_cast<double>(kind == LossOptions::Kind::kMse
                                ? squared_error(own, classes, label, scale, gradient)
                                : cross_entropy(own, classes, label, smoothing, best.value, scale, gradient));
    correct = best.index == label ? 1 : 0;
  }
  const double block_loss = block_sum(nats);
  const int block_correct = block_sum(correct);
  if (threadIdx.x == 0) block_totals[blockIdx.x] = {block_loss, block_correct, 0};
}

// One block adds up what the others left.
__global__ void add_totals_kernel(int blocks, int images, const DeviceTotals* block_totals,
                                  DeviceTotals* totals) {
  double nats = 0;
  std::int64_t correct = 0;
  for (int i = static_cast<int>(threadIdx.x); i < blocks; i += static_cast<int>(kThreads)) {
    nats += block_totals[i].loss;
    correct += block_totals[i].correct;
  }
  nats = block_sum(nats);
  correct = block_sum(correct);
  if (threadIdx.x == 0) {
    totals->loss += nats;
    totals->correct += correct;
    totals->samples += images;
  }
}

}  // namespace

int loss_scratch_count(int images) { return ceil_div(images, static_cast<int>(kThreads)); }

void loss(Stream& stream, const LossOptions& options, const StepInput* input, const std::uint32_t* rows,
          int images, int classes, const float* outputs, DeviceTotals* scratch, DeviceTotals* totals,
          float* grad_outputs) {
  const int blocks = loss_scratch_count(images);
  launch(stream, loss_kernel, {static_cast<unsigned>(blocks)}, {kThreads}, options.kind,
         static_cast<float>(options.label_smoothing), input, rows, images, classes, outputs, scratch,
         grad_outputs);
  launch(stream, add_totals_kernel, {1}, {kThreads}, blocks, images, scratch, totals);
}

}  // namespace sweep::cuda
