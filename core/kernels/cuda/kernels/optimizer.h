// Adds up the slices of the gradients and updates all parameters, in one launch for the whole network.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/kernels/cuda/kernels/linear.h"
#include "core/kernels/cuda/kernels/step_input.h"
#include "core/kernels/cuda/runtime/runtime.h"
#include "core/network/optimizer.h"

namespace sweep::cuda {

/// The factors of step number `step`, from 1.
StepFactors step_factors(const OptimizerOptions& options, double learning_rate, std::int64_t step);

/// Where one layer leaves the gradients of parameters offset … offset + count − 1: `slices` arrays, to be
/// added up, each `stride` floats after the previous one.
struct GradientSource {
  const float* slices_begin;
  int offset, count, slices, stride;
};

/// The optimizer's arrays of one network. All arrays are in the layout of Network::parameters().
struct OptimizerArrays {
  float* parameters;
  float* gradient;
  float* state[kMaxOptimizerStates];  // in the order of state_names(); nullptr after the last
};

/// What the blocks of a kernel that adds up slices work on. On the device.
class GradientTable {
 public:
  // A block's work: parameters first … first + width − 1 of a source, as far as it has them.
  struct Work {
    int source, first, width;
  };

  GradientTable() = default;
  GradientTable(Stream& stream, const std::vector<GradientSource>& sources);

  const GradientSource* sources() const { return sources_.data(); }
  const Work* works() const { return works_.data(); }
  unsigned blocks() const { return static_cast<unsigned>(works_.size()); }

  /// Adds up the slices and leaves the rest to somebody else: for the gradient of a share of a batch, if the
  /// sources cover all parameters. gradient[i] becomes the sum, in the layout of Network::parameters(), or
  /// has it added.
  void add_up(Stream& stream, bool add, float* gradient) const;

 private:
  Array<GradientSource> sources_;
  Array<Work> works_;
};

class Optimizer {
 public:
  /// `sources` cover all parameters. clip_norm 0: gradients are not clipped. stack_layers: so many sources at
  /// the end are the layers of a stack, for step_with_stack().
  Optimizer(Stream& stream, const OptimizerOptions& options, double clip_norm,
            const std::vector<GradientSource>& sources, const OptimizerArrays& arrays,
            std::size_t stack_layers = 0);

  /// One step. gradient[i] becomes the sum of the slices, clipped; parameters and state change as PyTorch's
  /// do.
  void step(Stream& stream, const StepInput* input) const;

  /// Whether step_with_stack() is possible for a batch of `images` whose weight gradients are summed in
  /// `slices` slices: there is a stack, nothing is clipped, and the batch is small.
  bool takes_stack(int images, int slices) const;
  /// linear_backward_weights() for the stack's layers and step() in one kernel, with the same bits. `layers`
  /// as there, except that their `gradient` stays unchanged.
  void step_with_stack(Stream& stream, const StepInput* input, std::span<const LinearGradient> layers,
                       int images, int slices) const;

  /// For optimizers that have the parameters of one network between them, which is clipped as a whole. With
  /// clipping step() is sum_squares() and update(); the squares of all are exchanged between the two.
  bool clips() const { return clip_norm_ > 0; }
  /// The squares of this optimizer's gradients, [square_count()], one per block; without clipping empty.
  int square_count() const { return clips() ? static_cast<int>(table_.blocks()) : 0; }
  double* squares() const { return squares_.data() + first_square_; }
  /// Those of all optimizers, in the order of the parameters; this one's begin at `first`.
  double* all_squares() const { return squares_.data(); }
  void join(int first, int all);
  void sum_squares(Stream& stream) const;
  void update(Stream& stream, const StepInput* input) const;

 private:
  OptimizerOptions options_;
  double clip_norm_;
  OptimizerArrays arrays_;
  GradientTable table_;
  Array<double> squares_;  // one per block
  int first_square_ = 0, all_squares_ = 0;
  GradientTable rest_;              // the sources of layers outside the stack, if there is one
  std::vector<int> stack_offsets_;  // of the stack's parameters, layer by layer
};

}  // namespace sweep::cuda
