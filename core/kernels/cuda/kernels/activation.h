// Activation functions and their derivatives, for the kernels that apply them.
#pragma once

#include "core/kernels/cuda/runtime/kernel.h"
#include "core/network/activation.h"

namespace sweep::cuda {

inline __device__ float sigmoid(float x) {
  // exp(-|x|) cannot overflow; the two branches of the textbook formula.
  const float e = expf(-fabsf(x)), small = e / (1.0f + e);
  return x < 0.0f ? small : 1.0f - small;
}

/// Φ(x), the normal distribution: gelu(x) = x · Φ(x).
inline __device__ float normal_cdf(float x) { return 0.5f + 0.5f * erff(x * 0.70710678f); }

inline __device__ float value_of(Activation activation, float coefficient, float x) {
  switch (activation) {
    case Activation::kRelu:
      return x <= 0.0f ? 0.0f : x;  // a NaN stays one
    case Activation::kLeakyRelu:
      return x > 0.0f ? x : x * coefficient;
    case Activation::kTanh:
      return tanhf(x);
    case Activation::kSigmoid:
      return sigmoid(x);
    case Activation::kGelu:
      return x * normal_cdf(x);
    case Activation::kSilu:
      return x * sigmoid(x);
  }
  return x;
}

/// f'(x), where y = f(x); each function takes the cheaper of the two.
inline __device__ float derivative_of(Activation activation, float coefficient, float x, float y) {
  switch (activation) {
    case Activation::kRelu:
      return y > 0.0f ? 1.0f : 0.0f;
    case Activation::kLeakyRelu:
      return x > 0.0f ? 1.0f : coefficient;
    case Activation::kTanh:
      return 1.0f - y * y;
    case Activation::kSigmoid:
      return y * (1.0f - y);
    case Activation::kGelu:
      return x * 0.39894228f * expf(-0.5f * x * x) + normal_cdf(x);
    case Activation::kSilu:
      return sigmoid(x) * (1.0f + x * (1.0f - sigmoid(x)));
  }
  return 1.0f;
}

/// grad_y · f'(x).
inline __device__ float gradient_of(Activation activation, float coefficient, float grad_y, float x,
                                    float y) {
  // The gradient at a dead relu is zero even where the gradient above is infinite.
  if (activation == Activation::kRelu) return y > 0.0f ? grad_y : 0.0f;
  return grad_y * derivative_of(activation, coefficient, x, y);
}

}  // namespace sweep::cuda
