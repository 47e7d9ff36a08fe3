// Adds up the parts of the gradients and updates all parameters, in one launch for the whole network.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/kernels/cuda/kernels/step_input.h"
#include "core/kernels/cuda/runtime/runtime.h"
#include "core/spec/optimizer.h"

namespace sweep::cuda {

/// The factors of step number `step`, from 1.
StepFactors step_factors(const OptimizerOptions& options, double learning_rate, std::int64_t step);

/// Where one layer leaves the gradients of parameters offset … offset + count − 1: `parts` arrays, to be
/// added up.
struct GradientSource {
  const float* parts_begin;
  int offset, count, parts;
};

/// The optimizer's arrays of one network. All arrays are in the layout of Network::parameters().
struct OptimizerArrays {
  float* parameters;
  float* gradient;
  float* state[kMaxOptimizerStates];  // in the order of state_names()
};

class Optimizer {
 public:
  /// `sources` cover all parameters. clip_norm 0: gradients are not clipped.
  Optimizer(Stream& stream, const OptimizerOptions& options, double clip_norm,
            const std::vector<GradientSource>& sources, const OptimizerArrays& arrays);

  /// One step. gradient[i] becomes the sum of the parts, clipped; parameters and state change as PyTorch's
  /// do.
  void step(Stream& stream, const StepInput* input) const;

 private:
  // A block's work: parameters first … first + width − 1 of a source, as far as it has them.
  struct Work {
    int source, first, width;
  };
  struct Rule;

  OptimizerOptions options_;
  double clip_norm_;
  OptimizerArrays arrays_;
  Array<GradientSource> sources_;
  Array<Work> works_;
  Array<double> squares_;  // one per block
  unsigned blocks_ = 0;

  friend struct OptimizerKernels;
};

}  // namespace sweep::cuda
