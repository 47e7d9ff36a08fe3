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

/// What the blocks of a kernel that adds up parts work on. On the device.
class GradientTable {
 public:
  // A block's work: parameters first … first + width − 1 of a source, as far as it has them.
  struct Work {
    int source, first, width;
  };

  GradientTable(Stream& stream, const std::vector<GradientSource>& sources);

  const GradientSource* sources() const { return sources_.data(); }
  const Work* works() const { return works_.data(); }
  unsigned blocks() const { return static_cast<unsigned>(works_.size()); }

 private:
  Array<GradientSource> sources_;
  Array<Work> works_;
};

/// Adds up the parts and leaves the rest to somebody else: for a gradient that is itself a part of a batch's.
class GradientSum {
 public:
  /// `sources` cover all parameters.
  GradientSum(Stream& stream, const std::vector<GradientSource>& sources) : table_(stream, sources) {}

  /// gradient[i] becomes the sum of the parts, in the layout of Network::parameters(), or has it added.
  void run(Stream& stream, bool add, float* gradient) const;

 private:
  GradientTable table_;
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
  struct Rule;

  OptimizerOptions options_;
  double clip_norm_;
  OptimizerArrays arrays_;
  GradientTable table_;
  Array<double> squares_;  // one per block

  friend struct OptimizerKernels;
};

}  // namespace sweep::cuda
