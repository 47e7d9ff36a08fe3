#include "core/kernels/cuda/libraries/kernel_comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/base/error.h"
#include "core/kernels/cuda/libraries/comparison_arrays.h"

namespace sweep::cuda {
namespace {

std::size_t in_floats(const LinearShape& s) { return static_cast<std::size_t>(s.in_features); }
std::size_t out_floats(const LinearShape& s) { return static_cast<std::size_t>(s.out_features); }
std::size_t in_floats(const ConvShape& s) {
  return static_cast<std::size_t>(s.in_channels) * static_cast<std::size_t>(s.in_height * s.in_width);
}
std::size_t out_floats(const ConvShape& s) {
  return static_cast<std::size_t>(s.out_channels) * static_cast<std::size_t>(s.out_height * s.out_width);
}

// The built-in kernels for a task; they write a weight gradient in `parts` parts.
int parts_of(const LinearShape& s, int images) { return linear_gradient_parts(s, images); }
int parts_of(const ConvShape& s, int images) { return conv_gradient_parts(s, images); }

void run_builtin(Stream& stream, const LinearShape& s, const LibraryTask& task, int parts,
                 const LibraryArrays& arrays) {
  switch (task.direction) {
    case Direction::kForward:
      return linear_forward(stream, s, task.images, arrays.in, arrays.weight, arrays.bias, task.relu,
                            arrays.result);
    case Direction::kBackwardWeights:
      return linear_backward_weights(stream, s, task.images, parts, arrays.in, arrays.grad_out,
                                     arrays.result);
    case Direction::kBackwardInput:
      return linear_backward_input(stream, s, task.images, arrays.grad_out, arrays.weight, task.add,
                                   arrays.result);
    case Direction::kInference:
      break;  // the same as kForward for these layers
  }
}

void run_builtin(Stream& stream, const ConvShape& s, const LibraryTask& task, int parts,
                 const LibraryArrays& arrays) {
  switch (task.direction) {
    case Direction::kForward:
      return conv_forward(stream, s, task.images, arrays.in, arrays.weight, arrays.bias, task.relu,
                          arrays.result);
    case Direction::kBackwardWeights:
      return conv_backward_weights(stream, s, task.images, parts, arrays.in, arrays.grad_out, arrays.result);
    case Direction::kBackwardInput:
      return conv_backward_input(stream, s, task.images, arrays.grad_out, arrays.weight, task.add,
                                 arrays.result);
    case Direction::kInference:
      break;  // the same as kForward for these layers
  }
}

// Elements first … first + count − 1 of a result of `size` floats, added up over its parts.
std::vector<float> summed(Stream& stream, const float* from, std::size_t size, int parts, std::size_t first,
                          std::size_t count) {
  std::vector<float> sums = to_host<float>(stream, from + first, count);
  for (int part = 1; part < parts; ++part) {
    const std::vector<float> more =
        to_host<float>(stream, from + static_cast<std::size_t>(part) * size + first, count);
    for (std::size_t i = 0; i < count; ++i) sums[i] += more[i];
  }
  return sums;
}

template <class Shape>
class Comparer {
 public:
  Comparer(const Shape& shape, const LibraryTask& task, const LibraryPlan& plan)
      : shape_(shape),
        task_(task),
        plan_(plan),
        images_(static_cast<std::size_t>(task.images)),
        parts_(task.direction == Direction::kBackwardWeights ? parts_of(shape, task.images) : 1),
        in_(stream_, reads(task.direction != Direction::kBackwardInput, images_ * in_floats(shape)), 1),
        // Big enough to put weights and biases at the same offsets from 256-byte boundaries as in training.
        parameters_(
            stream_,
            reads(task.direction != Direction::kBackwardWeights,
                  kAlignmentFloats + kAlignmentFloats + static_cast<std::size_t>(shape.gradient_floats())),
            2),
        grad_out_(stream_, reads(task.direction != Direction::kForward, images_ * out_floats(shape)), 3),
        builtin_(stream_, static_cast<std::size_t>(parts_) * result_floats(), 4),
        library_(stream_, result_floats(), 4),  // the same numbers: with task.add, both add to them
        workspace_(plan.workspace_bytes(), "the choice of kernels") {}

  Comparison run(const KernelTimer& timer) {
    Comparison comparison;
    run_builtin();
    if (!library_runs()) return comparison;
    comparison.agree =
        results_agree() && (task_.direction != Direction::kForward || !task_.relu || keeps_nan());
    if (!comparison.agree) return comparison;
    comparison.builtin_seconds = timer(stream_, [&] { run_builtin(); });
    comparison.library_seconds = timer(stream_, [&] { run_library(); });
    return comparison;
  }

  bool library_runs() {
    try {
      run_library();
      return true;
    } catch (const DeviceError&) {
      return false;
    }
  }

 private:
  static constexpr std::size_t kAlignmentFloats = 64;  // floats in 256 bytes

  static std::size_t reads(bool yes, std::size_t count) { return yes ? count : 0; }

  std::size_t result_floats() const {
    switch (task_.direction) {
      case Direction::kForward:
        return images_ * out_floats(shape_);
      case Direction::kBackwardWeights:
        return static_cast<std::size_t>(shape_.gradient_floats());
      default:
        return images_ * in_floats(shape_);
    }
  }

  LibraryArrays arrays(float* result) const {
    const float* weight =
        parameters_.data() + static_cast<std::size_t>(task_.weight_offset) % kAlignmentFloats;
    const std::size_t after =
        kAlignmentFloats + static_cast<std::size_t>(shape_.weights()) / kAlignmentFloats * kAlignmentFloats;
    const float* bias =
        parameters_.data() + after + static_cast<std::size_t>(task_.bias_offset) % kAlignmentFloats;
    return {.in = in_.data(),
            .weight = weight,
            .bias = shape_.bias ? bias : nullptr,
            .grad_out = grad_out_.data(),
            .result = result,
            .workspace = workspace_.data()};
  }

  void run_builtin() { cuda::run_builtin(stream_, shape_, task_, parts_, arrays(builtin_.data())); }
  void run_library() { plan_.run(stream_, arrays(library_.data())); }

  // Compares the start and the end of the result. The end has the biases and the tiles that are cut off.
  bool results_agree() {
    constexpr std::size_t kMax = 1 << 20;
    const std::size_t size = result_floats(), count = std::min(size, kMax);
    for (const std::size_t first : {std::size_t{0}, size - count}) {
      if (!nearly_equal(summed(stream_, builtin_.data(), size, parts_, first, count),
                        to_host<float>(stream_, library_.data() + first, count)))
        return false;
    }
    return true;
  }

  // Puts a NaN into an input that outputs of the first image depend on: where the built-in kernel passes it
  // through the relu, the library has to, or a diverged training would look healthy.
  bool keeps_nan() {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const float before = to_host<float>(stream_, in_.data(), 1)[0];
    stream_.upload(in_.data(), &nan, sizeof nan);
    run_builtin();
    run_library();
    const std::vector<float> builtin = to_host<float>(stream_, builtin_.data(), out_floats(shape_)),
                             library = to_host<float>(stream_, library_.data(), out_floats(shape_));
    stream_.upload(in_.data(), &before, sizeof before);
    for (std::size_t i = 0; i < builtin.size(); ++i) {
      if (std::isnan(builtin[i]) && !std::isnan(library[i])) return false;
    }
    return true;
  }

  const Shape& shape_;
  const LibraryTask& task_;
  const LibraryPlan& plan_;
  const std::size_t images_;
  const int parts_;
  Stream stream_;
  RandomArray in_, parameters_, grad_out_, builtin_, library_;
  Array<std::byte> workspace_;
};

}  // namespace

std::int64_t products(const LinearShape& s, const LibraryTask& task) {
  return std::int64_t{task.images} * s.in_features * s.out_features;
}

std::int64_t products(const ConvShape& s, const LibraryTask& task) {
  return std::int64_t{task.images} * s.out_channels * s.out_height * s.out_width * s.taps();
}

Comparison compare(const LinearShape& shape, const LibraryTask& task, const LibraryPlan& plan,
                   const KernelTimer& timer) {
  return Comparer(shape, task, plan).run(timer);
}

Comparison compare(const ConvShape& shape, const LibraryTask& task, const LibraryPlan& plan,
                   const KernelTimer& timer) {
  return Comparer(shape, task, plan).run(timer);
}

bool library_runs(const LinearShape& shape, const LibraryTask& task, const LibraryPlan& plan) {
  return Comparer(shape, task, plan).library_runs();
}

bool library_runs(const ConvShape& shape, const LibraryTask& task, const LibraryPlan& plan) {
  return Comparer(shape, task, plan).library_runs();
}

}  // namespace sweep::cuda
