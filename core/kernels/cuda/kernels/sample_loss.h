// The loss of one sample, for the kernels that compute losses.
#pragma once

#include "core/kernels/cuda/kernels/loss.h"
#include "core/kernels/cuda/runtime/kernel.h"

namespace sweep::cuda {

struct Maximum {
  float value;
  int index;
};

/// The first maximum of outputs[0], outputs[stride], … As in PyTorch, a NaN is larger than any number.
inline __device__ Maximum largest(const float* outputs, int classes, int stride = 1) {
  Maximum maximum{outputs[0], 0};
  for (int c = 1; c < classes; ++c) {
    const float x = outputs[c * stride];
    if (x > maximum.value || (x != x && maximum.value == maximum.value)) maximum = {x, c};
  }
  return maximum;
}

/// LossOptions as a kernel needs them.
struct SampleLoss {
  LossOptions::Kind kind = LossOptions::Kind::kCrossEntropy;
  float smoothing = 0;
  int classes = 0;

  SampleLoss() = default;
  SampleLoss(const LossOptions& options, int classes_of_network)
      : kind(options.kind),
        smoothing(static_cast<float>(options.label_smoothing)),
        classes(classes_of_network) {}

  /// Cross entropy in nats, from the outputs minus their maximum, because exp overflows above 88:
  /// label_output is the label's, `sum` the sum of all, log_total the logarithm of the sum of their exp.
  __device__ float cross_entropy(float label_output, float sum, float log_total) const {
    float nats = log_total - label_output;
    if (smoothing != 0.0f)  // Σ target · (log total − x)
      nats =
          (1.0f - smoothing) * nats + (smoothing * log_total - smoothing / static_cast<float>(classes) * sum);
    return nats;
  }
  /// The target probability of class `c` for cross entropy, smoothed.
  __device__ float target(int c, int label) const {
    return (c == label ? 1.0f - smoothing : 0.0f) + smoothing / static_cast<float>(classes);
  }
  /// Mean squared error: the error of one output against the one-hot target, and the weight of a class.
  __device__ float error(float output, int c, int label) const { return output - (c == label ? 1.0f : 0.0f); }
  __device__ float per_class() const { return 1.0f / static_cast<float>(classes); }
};

}  // namespace sweep::cuda
