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
  SWEEP_ROLLED
  for (int c = 1; c < classes; ++c) {
    const float x = outputs[c * stride];
    if (x > maximum.value || (x != x && maximum.value == maximum.value)) maximum = {x, c};
  }
  return maximum;
}

/// The target of one sample.
struct SampleTarget {
  int label = -1;                  // of classes; −1: no sample
  const float* numbers = nullptr;  // [outputs]; nullptr: classes

  SampleTarget() = default;
  __device__ SampleTarget(const StepInput& input, std::uint32_t row, int outputs) {
    if (input.numbers != nullptr) {
      numbers = input.numbers + static_cast<std::size_t>(row) * static_cast<std::size_t>(outputs);
    } else {
      label = input.labels[row];
    }
  }
};

/// Sums over the samples of a thread; see Totals.
struct SampleSums {
  double loss = 0, absolute_error = 0, squared_error = 0;
  int correct = 0, in_top = 0;
};

/// The loss of samples with `outputs` outputs.
struct SampleLoss {
  LossParameters parameters;
  int outputs = 0;

  __device__ bool is_cross_entropy() const { return parameters.kind == LossOptions::Kind::kCrossEntropy; }

  /// Cross entropy: the weighted, smoothed target of class `c`.
  __device__ float class_target(int c, int label) const {
    const float target = (c == label ? 1.0f - parameters.smoothing : 0.0f) +
                         parameters.smoothing / static_cast<float>(outputs);
    return parameters.class_weights == nullptr ? target : target * parameters.class_weights[c];
  }
  /// Their sum over the classes, 1 without weights.
  __device__ float target_sum(int label) const {
    if (parameters.class_weights == nullptr) return 1.0f;
    float sum = 0.0f;
    for (int c = 0; c < outputs; ++c) sum += class_target(c, label);
    return sum;
  }
  /// Cross entropy in nats, from the outputs x[0], x[stride], … minus their maximum `peak`, because exp
  /// overflows above 88. `sum`: of all x − peak; log_total: the logarithm of the sum of their exp.
  __device__ float cross_entropy(const float* x, int stride, float peak, int label, float sum,
                                 float log_total) const {
    if (parameters.class_weights != nullptr) {
      float product = 0.0f;
      for (int c = 0; c < outputs; ++c) product += class_target(c, label) * (x[c * stride] - peak);
      return target_sum(label) * log_total - product;
    }
    float nats = log_total - (x[label * stride] - peak);
    const float smoothing = parameters.smoothing;
    if (smoothing != 0.0f)  // Σ target · (log total − x)
      nats =
          (1.0f - smoothing) * nats + (smoothing * log_total - smoothing / static_cast<float>(outputs) * sum);
    return nats;
  }

  /// The other losses: the number that output `c` is compared with.
  __device__ float number(const SampleTarget& target, int c) const {
    if (target.numbers != nullptr) return target.numbers[c];
    if (outputs == 1) return static_cast<float>(target.label);
    return c == target.label ? 1.0f : 0.0f;
  }
  /// The loss of one output x with the number t, and its derivative by x.
  __device__ float value(float x, float t) const;
  __device__ float slope(float x, float t) const;
  __device__ float per_output() const { return 1.0f / static_cast<float>(outputs); }

  /// Counts a sample in `sums`. peak: of its outputs x[0], x[stride], …
  __device__ void count(const float* x, int stride, const Maximum& peak, const SampleTarget& target,
                        SampleSums& sums) const;
  /// Adds a block's sums, of `images` samples in all, to `total`.
  __device__ void add(const SampleSums& sums, int images, bool is_regression, Totals& total) const {
    total.loss += sums.loss;
    total.correct += sums.correct;
    total.in_top += sums.in_top;
    total.absolute_error += sums.absolute_error;
    total.squared_error += sums.squared_error;
    total.samples += images;
    if (is_regression) {
      total.numbers += static_cast<std::int64_t>(images) * outputs;
    } else if (counts_top()) {
      total.ranked += images;
    }
  }
  /// Like sweep::counts_top().
  __device__ bool counts_top() const { return outputs > 2 * kTopClasses; }
};

/// 1 / (1 + e^−x) by the exponential of −|x|, which cannot overflow.
inline __device__ float logistic(float x) {
  const float small = expf(-fabsf(x));
  return (x < 0.0f ? small : 1.0f) / (1.0f + small);
}

inline __device__ float SampleLoss::value(float x, float t) const {
  const float error = x - t;
  switch (parameters.kind) {
    case LossOptions::Kind::kCrossEntropy:
      break;  // compares no single outputs
    case LossOptions::Kind::kMse:
      return error * error;
    case LossOptions::Kind::kL1:
      return fabsf(error);
    case LossOptions::Kind::kSmoothL1: {
      const float size = fabsf(error), beta = parameters.beta;
      return size < beta ? 0.5f * (size * size) / beta : size - 0.5f * beta;
    }
    case LossOptions::Kind::kBceWithLogits:
      // fmaxf(NaN, 0) is 0, but the other terms are NaN then.
      return fmaxf(x, 0.0f) - x * t + log1pf(expf(-fabsf(x)));
  }
  return 0.0f;
}

inline __device__ float SampleLoss::slope(float x, float t) const {
  const float error = x - t, sign = error > 0.0f ? 1.0f : error < 0.0f ? -1.0f : 0.0f;
  switch (parameters.kind) {
    case LossOptions::Kind::kCrossEntropy:
      break;
    case LossOptions::Kind::kMse:
      return 2.0f * error;
    case LossOptions::Kind::kL1:
      return sign;
    case LossOptions::Kind::kSmoothL1:
      return fabsf(error) < parameters.beta ? error / parameters.beta : sign;
    case LossOptions::Kind::kBceWithLogits:
      return logistic(x) - t;
  }
  return 0.0f;
}

inline __device__ void SampleLoss::count(const float* x, int stride, const Maximum& peak,
                                         const SampleTarget& target, SampleSums& sums) const {
  if (target.numbers != nullptr) {
    const bool probabilities = parameters.kind == LossOptions::Kind::kBceWithLogits;
    float absolute = 0.0f, squares = 0.0f;
    for (int c = 0; c < outputs; ++c) {
      const float error = (probabilities ? logistic(x[c * stride]) : x[c * stride]) - target.numbers[c];
      absolute += fabsf(error);
      squares += error * error;
    }
    sums.absolute_error += static_cast<double>(absolute);
    sums.squared_error += static_cast<double>(squares);
    return;
  }
  const bool single = outputs == 1 && !is_cross_entropy();  // of two classes: above 0 is the second
  sums.correct += (single ? (x[0] > 0.0f ? 1 : 0) : peak.index) == target.label ? 1 : 0;
  if (!counts_top()) return;
  const float of_label = x[target.label * stride];
  int rank = 0;  // outputs that come before the label's
  for (int c = 0; c < outputs; ++c) {
    const float other = x[c * stride];
    rank += other > of_label || of_label != of_label || (other == of_label && c < target.label) ? 1 : 0;
  }
  sums.in_top += rank < kTopClasses ? 1 : 0;
}

}  // namespace sweep::cuda
