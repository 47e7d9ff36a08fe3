// NVIDIA's libraries for wide layers: cuBLASLt for linear layers, cuDNN for convolutions, batch normalisation
// and pooling. In full float32: no TF32, no half precision; and, unless a task allows others, only algorithms
// that give the same bits every time.
//
// A plan is what a library does of one layer, made once: the algorithm is chosen and the memory is known, so
// that run() only puts work on the stream and may be recorded in a graph. Which algorithm it is depends on
// the library's version, the device and the task alone. Implemented with the libraries in library.cpp,
// cublaslt.cpp and cudnn.cpp, which open them at run time (a machine that has only the driver trains with own
// kernels), and in host/ with plain loops.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "core/kernels/cuda/kernels/batch_norm.h"
#include "core/kernels/cuda/kernels/conv.h"
#include "core/kernels/cuda/kernels/linear.h"
#include "core/kernels/cuda/kernels/pool.h"
#include "core/kernels/cuda/runtime/runtime.h"

namespace sweep::cuda {

/// Bytes that a plan may ask for at most. Those of a network's layers share one place.
inline constexpr std::size_t kMostWorkspace = std::size_t{128} << 20;

/// What is computed of a layer: its output, the gradient of its parameters, the gradient of its input. Of
/// batch normalisation, kForward is training's and kEvaluate the other, and kInput is both gradients.
enum class Work { kForward, kWeights, kInput, kEvaluate };
/// Those of layers with products.
inline constexpr Work kWorks[] = {Work::kForward, Work::kWeights, Work::kInput};

/// "forward", "weights", "input" or "evaluate".
const char* to_string(Work work);

struct LibraryTask {
  Work work = Work::kForward;
  int images = 0;
  bool relu = false;  // forward: negative results become 0, a NaN stays one
  bool add = false;   // input: the gradient is added to what is there
  // Where the parameters start, in floats after an address that is a multiple of 256: kernels that read
  // several floats at once have to know. All other arrays start at such an address.
  int weight_place = 0, bias_place = 0;
  bool deterministic = true;  // false: algorithms that add up in any order are as good
};

/// The device's arrays of a run, as the shapes' own functions have them. Those that the task does not read
/// may be nullptr.
struct LibraryArrays {
  const float* in = nullptr;        // forward, weights; input of batch normalisation and pooling
  const float* out = nullptr;       // input of pooling
  const float* weight = nullptr;    // forward, input
  const float* bias = nullptr;      // forward, where the shape has one
  const float* grad_out = nullptr;  // weights, input
  float* result = nullptr;          // out; gradient: the weights', then the biases'; or grad_in
  std::byte* workspace = nullptr;   // workspace_bytes(), content undefined before and after
  // Of batch normalisation, whose arrays all start at multiples of 16 bytes; [channels] each: what forward
  // leaves for input, in a form of the library's own; the running statistics, which forward moves and
  // evaluate reads; and of input the gradients of weights and biases.
  float *mean = nullptr, *inverse = nullptr;
  float *running_mean = nullptr, *running_var = nullptr;
  float* grad_parameters = nullptr;
};

class LibraryPlan {
 public:
  LibraryPlan() = default;
  virtual ~LibraryPlan() = default;
  LibraryPlan(const LibraryPlan&) = delete;
  LibraryPlan& operator=(const LibraryPlan&) = delete;

  virtual std::size_t workspace_bytes() const = 0;
  /// Whether it gives the same bits every time; always if the task asks for it.
  virtual bool deterministic() const = 0;
  /// Neither allocates nor waits. Throws DeviceError if the library refuses. Not thread-safe.
  virtual void run(Stream& stream, const LibraryArrays& arrays) const = 0;
};

/// A library for layers of one kind, ready for one device. Its plans may outlive it.
template <class Shape>
class LayerLibrary {
 public:
  LayerLibrary() = default;
  virtual ~LayerLibrary() = default;
  LayerLibrary(const LayerLibrary&) = delete;
  LayerLibrary& operator=(const LayerLibrary&) = delete;

  /// "cuDNN 9.19.0": what the bits of its results depend on.
  virtual std::string name() const = 0;
  /// nullptr if the library has no algorithm for it that is float32, content with `workspace_limit` bytes
  /// and, where the task asks for it, deterministic. Neither allocates device memory nor waits.
  virtual std::unique_ptr<LibraryPlan> plan(const Shape& shape, const LibraryTask& task,
                                            std::size_t workspace_limit) const = 0;
};

/// What is installed; nullptr where a library is not, or cannot be used on the device.
struct Libraries {
  std::shared_ptr<const LayerLibrary<LinearShape>> linear;
  std::shared_ptr<const LayerLibrary<ConvShape>> conv;
  std::shared_ptr<const LayerLibrary<BatchNormShape>> batch_norm;
  std::shared_ptr<const LayerLibrary<PoolLayer>> pool;

  const auto& of(const LinearShape& /*shape*/) const { return linear; }
  const auto& of(const ConvShape& /*shape*/) const { return conv; }
  const auto& of(const BatchNormShape& /*shape*/) const { return batch_norm; }
  const auto& of(const PoolLayer& /*shape*/) const { return pool; }
};

/// Opens the libraries for CUDA device `device`, which takes a second the first time. Needs a device that can
/// be used.
Libraries open_libraries(int device);

}  // namespace sweep::cuda
