// The loss of one sample, for the kernels that compute it.
#pragma once

#include "core/kernels/cuda/kernels/loss.h"
#include "core/kernels/cuda/runtime/kernel.h"

namespace sweep::cuda {

struct Best {
  float value;
  int index;
};

/// The first of the largest of outputs[0], outputs[stride] …; as PyTorch: a NaN is larger than any number.
inline __device__ Best largest(const float* outputs, int classes, int stride = 1) {
  Best best{outputs[0], 0};
  for (int c = 1; c < classes; ++c) {
    const float x = outputs[c * stride];
    if (x > best.value || (x != x && best.value == best.value)) best = {x, c};
  }
  return best;
}

/// What a loss kernel has to know of LossOptions.
struct SampleLoss {
  LossOptions::Kind kind = LossOptions::Kind::kCrossEntropy;
  float smoothing = 0;
  int classes = 0;

  SampleLoss() = default;
  SampleLoss(const LossOptions& options, int classes_of_network)
      : kind(options.kind),
        smoothing(static_cast<float>(options.label_smoothing)),
        classes(classes_of_network) {}

  /// Of cross entropy, in nats. Outputs less their largest, because exp overflows above 88: `own`, the
  /// label's; `sum`, of all; `log_total`, the logarithm of the sum of their exp.
  __device__ float cross_entropy(float own, float sum, float log_total) const {
    float nats = log_total - own;
    if (smoothing != 0.0f)  // Σ target · (log total − x)
      nats =
          (1.0f - smoothing) * nats + (smoothing * log_total - smoothing / static_cast<float>(classes) * sum);
    return nats;
  }
  /// What cross entropy wants class `c` to have.
  __device__ float target(int c, int label) const {
    return (c == label ? 1.0f - smoothing : 0.0f) + smoothing / static_cast<float>(classes);
  }
  /// Of mse: the error of one output, and the factor of its gradient.
  __device__ float error(float output, int c, int label) const { return output - (c == label ? 1.0f : 0.0f); }
  __device__ float share() const { return 1.0f / static_cast<float>(classes); }
};

}  // namespace sweep::cuda
