// NVIDIA's libraries for wide layers: cuBLASLt for linear layers, cuDNN for convolutions. Always in full
// float32 (no TF32, no half precision) and, unless a task allows otherwise, only with algorithms that give
// the same bits every time.
//
// A plan is a layer's work in one direction, prepared once: the algorithm is chosen and the workspace known,
// so run() only puts kernels on the stream and can be captured in a graph. The algorithm depends on nothing
// but the library's version, the device and the task. library.cpp, cublaslt.cpp and cudnn*.cpp implement this
// header; they open the libraries at run time, so a machine that has only the driver trains with the built-in
// kernels. tests/cudart implements it with plain loops.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "core/kernels/cuda/kernels/conv.h"
#include "core/kernels/cuda/kernels/linear.h"
#include "core/kernels/cuda/runtime/runtime.h"

namespace sweep::cuda {

/// Largest workspace of a plan, in bytes. The layers of a network use the same memory for it one after the
/// other.
inline constexpr std::size_t kMaxWorkspace = std::size_t{128} << 20;

/// What is computed for a layer: its output, the gradient of its parameters, the gradient of its input.
enum class Direction { kForward, kBackwardWeights, kBackwardInput };

/// Everything besides the layer's shape that an algorithm depends on.
struct LibraryTask {
  Direction direction = Direction::kForward;
  int images = 0;
  bool relu = false;  // kForward: apply relu to the result; a NaN stays one
  bool add = false;   // kBackwardInput: add the gradient to what the result holds
  // Where the parameters start, in floats from an address that is a multiple of 256 bytes. Kernels with
  // vector loads need it: parameters lie in one array without gaps. All other arrays start at such an
  // address.
  int weight_offset = 0, bias_offset = 0;
  bool deterministic = true;  // false: algorithms whose order of summation varies are as good
};

/// The device arrays of one run, with the shapes of the built-in kernels (kernels/*.h). An array that the
/// task does not read may be nullptr. Comments name the directions that use it.
struct LibraryArrays {
  const float* in = nullptr;        // [images][in]: kForward, kBackwardWeights
  const float* weight = nullptr;    // kForward, kBackwardInput
  const float* bias = nullptr;      // kForward, if the shape has one
  const float* grad_out = nullptr;  // [images][out]: kBackwardWeights, kBackwardInput
  // kForward: [images][out]. kBackwardWeights: gradient of the weights, then of the biases.
  // kBackwardInput: [images][in].
  float* result = nullptr;
  std::byte* workspace = nullptr;  // workspace_bytes(); content undefined before and after
};

class LibraryPlan {
 public:
  LibraryPlan() = default;
  virtual ~LibraryPlan() = default;
  LibraryPlan(const LibraryPlan&) = delete;
  LibraryPlan& operator=(const LibraryPlan&) = delete;

  virtual std::size_t workspace_bytes() const = 0;
  /// Whether every run gives the same bits. Always true if the task demands it.
  virtual bool deterministic() const = 0;
  /// Puts the work on `stream`; neither allocates nor waits. Throws DeviceError if the library refuses. Not
  /// thread-safe.
  virtual void run(Stream& stream, const LibraryArrays& arrays) const = 0;
};

/// A library for one kind of layer, ready for one device; several threads may use it. Plans may outlive it.
template <class Shape>
class LayerLibrary {
 public:
  LayerLibrary() = default;
  virtual ~LayerLibrary() = default;
  LayerLibrary(const LayerLibrary&) = delete;
  LayerLibrary& operator=(const LayerLibrary&) = delete;

  /// "cuDNN 9.19.0": name and version, on which the bits of its results depend.
  virtual std::string name() const = 0;
  /// nullptr if the library has no float32 algorithm for the task that needs at most `workspace_limit` bytes
  /// and is deterministic where the task demands it. Neither allocates device memory nor waits.
  virtual std::unique_ptr<LibraryPlan> plan(const Shape& shape, const LibraryTask& task,
                                            std::size_t workspace_limit) const = 0;
};

/// Opens the library for CUDA device `device`, which can be used: cuBLASLt for LinearShape, cuDNN for
/// ConvShape. Makes its handle and probes what it does with NaNs: up to a second the first time in a process.
/// Returns nullptr if the library is not installed, lacks one of its parts, or does not support the device.
template <class Shape>
std::shared_ptr<const LayerLibrary<Shape>> open_library(int device);

}  // namespace sweep::cuda
