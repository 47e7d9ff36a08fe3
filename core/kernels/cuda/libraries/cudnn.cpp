// Convolutions with cuDNN. Its layouts are this engine's: activations [images][channels][height][width],
// filters [out][in / groups][height][width].
#include "core/kernels/cuda/libraries/cudnn.h"

#include <mutex>
#include <vector>

#include "core/base/error.h"
#include "core/kernels/cuda/kernels/elementwise.h"

namespace sweep::cuda {
namespace {

void check_cudnn(cudnnStatus_t status, const char* doing) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  throw DeviceError(std::string("cuda: error of cuDNN while ") + doing + ": " + cudnn().error_string(status) +
                    "; SWEEP_CUDA_KERNELS=builtin trains without it");
}

// A cuDNN handle and its lock. Engines of several threads share one handle per device, but cuDNN lets only
// one thread at a time use a handle, and the stream is a property of the handle.
struct CudnnContext {
  CudnnContext() { check_cudnn(cudnn().create(&handle), "opening it"); }
  ~CudnnContext() { cudnn().destroy(handle); }
  CudnnContext(const CudnnContext&) = delete;
  CudnnContext& operator=(const CudnnContext&) = delete;

  cudnnHandle_t get() const { return handle; }
  cudnnHandle_t handle = nullptr;
  std::mutex mutex;
};
using CudnnHandle = std::shared_ptr<CudnnContext>;

// A new descriptor, which `set` fills in. Throws DeviceError for what cuDNN does not take.
template <class Pointer, class Set>
LibraryObject<Pointer, cudnnStatus_t> described(const char* doing, cudnnStatus_t (*create)(Pointer*),
                                                cudnnStatus_t (*destroy)(Pointer), const Set& set) {
  Pointer made = nullptr;
  check_cudnn(create(&made), doing);
  LibraryObject<Pointer, cudnnStatus_t> descriptor(made, destroy);
  check_cudnn(set(made), doing);
  return descriptor;
}

using Tensor = LibraryObject<cudnnTensorDescriptor_t, cudnnStatus_t>;
using Filter = LibraryObject<cudnnFilterDescriptor_t, cudnnStatus_t>;
using Convolution = LibraryObject<cudnnConvolutionDescriptor_t, cudnnStatus_t>;

// Floats [images][channels][height][width] without gaps.
Tensor tensor_of(int images, int channels, int height, int width) {
  return described("describing an array", cudnn().tensor_create, cudnn().tensor_destroy,
                   [&](cudnnTensorDescriptor_t tensor) {
                     return cudnn().tensor_set(tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, images, channels,
                                               height, width);
                   });
}

Filter filter_of(const ConvShape& s) {
  return described("describing weights", cudnn().filter_create, cudnn().filter_destroy,
                   [&](cudnnFilterDescriptor_t filter) {
                     return cudnn().filter_set(filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, s.out_channels,
                                               s.group_in(), s.kernel_height, s.kernel_width);
                   });
}

Convolution convolution_of(const ConvShape& s) {
  const auto set = [&](cudnnConvolutionDescriptor_t conv) {
    cudnnStatus_t status =
        cudnn().conv_set(conv, s.pad_y, s.pad_x, s.stride_y, s.stride_x, s.dilation_y, s.dilation_x,
                         CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT);  // as PyTorch: the kernel is not flipped
    if (status == CUDNN_STATUS_SUCCESS) status = cudnn().conv_set_groups(conv, s.groups);
    // The default would allow TF32, which keeps 10 of the 23 bits of the mantissa.
    return status == CUDNN_STATUS_SUCCESS ? cudnn().conv_set_math(conv, CUDNN_FMA_MATH) : status;
  };
  return described("describing a convolution", cudnn().conv_create, cudnn().conv_destroy, set);
}

// cuDNN assumes that arrays are 16-byte aligned, but parameters lie in one array without gaps. Parameters
// that are not aligned are copied to, or from, an aligned array at the end of the workspace.
constexpr std::size_t kAlignment = 16;

bool is_aligned(int offset) { return static_cast<std::size_t>(offset) * sizeof(float) % kAlignment == 0; }

std::size_t rounded(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// The descriptors of a convolution.
struct Descriptors {
  Descriptors(const ConvShape& s, int images)
      : in(tensor_of(images, s.in_channels, s.in_height, s.in_width)),
        out(tensor_of(images, s.out_channels, s.out_height, s.out_width)),
        bias(tensor_of(1, s.out_channels, 1, 1)),
        weight(filter_of(s)),
        conv(convolution_of(s)) {}
  Tensor in, out, bias;
  Filter weight;
  Convolution conv;
};

// A parameter, or gradient, that is not aligned where the layer has it: its floats; 0 if there is none.
int copied_floats(const ConvShape& s, const LibraryTask& task) {
  if (task.direction == Direction::kBackwardWeights)
    return s.bias && !is_aligned(s.weights()) ? s.out_channels : 0;
  return is_aligned(task.weight_offset) ? 0 : s.weights();
}

class ConvPlan final : public LibraryPlan {
 public:
  // choose() has to follow, before run().
  ConvPlan(CudnnHandle handle, const ConvShape& shape, const LibraryTask& task)
      : handle_(std::move(handle)),
        shape_(shape),
        task_(task),
        copy_bytes_(static_cast<std::size_t>(copied_floats(shape, task)) * sizeof(float)),
        d_(shape, task.images) {}

  std::size_t workspace_bytes() const override {
    return copy_bytes_ > 0 ? rounded(workspace_bytes_) + copy_bytes_ : workspace_bytes_;
  }

  bool deterministic() const override { return deterministic_; }

  // False if the library has no algorithm.
  bool choose(std::size_t workspace_limit) {
    const std::scoped_lock lock(handle_->mutex);
    const std::size_t reserved = copy_bytes_ > 0 ? copy_bytes_ + kAlignment : 0;
    if (reserved > workspace_limit) return false;
    const std::size_t limit = workspace_limit - reserved;
    const auto in = d_.in.get(), out = d_.out.get();
    switch (task_.direction) {
      case Direction::kForward:
        return choose_between<cudnnConvolutionFwdAlgoPerf_t>(cudnn().forward_algorithms,
                                                             cudnn().forward_workspace, limit, forward_, in,
                                                             d_.weight.get(), d_.conv.get(), out);
      case Direction::kBackwardWeights:
        return choose_between<cudnnConvolutionBwdFilterAlgoPerf_t>(cudnn().filter_algorithms,
                                                                   cudnn().filter_workspace, limit, weights_,
                                                                   in, out, d_.conv.get(), d_.weight.get());
      default:
        return choose_between<cudnnConvolutionBwdDataAlgoPerf_t>(cudnn().data_algorithms,
                                                                 cudnn().data_workspace, limit, input_,
                                                                 d_.weight.get(), out, d_.conv.get(), in);
    }
  }

  void run(Stream& stream, const LibraryArrays& arrays) const override {
    const std::scoped_lock lock(handle_->mutex);
    check_cudnn(cudnn().set_stream(handle_->get(), stream.native()), "choosing a stream");
    switch (task_.direction) {
      case Direction::kForward:
        return forward(stream, arrays);
      case Direction::kBackwardWeights:
        return backward_weights(stream, arrays);
      default:
        return backward_input(stream, arrays);
    }
  }

 private:
  void forward(Stream& stream, const LibraryArrays& arrays) const {
    const float* weight = aligned_weight(stream, arrays);
    check_cudnn(
        cudnn().forward(handle_->get(), &kOne, d_.in.get(), arrays.in, d_.weight.get(), weight, d_.conv.get(),
                        forward_, arrays.workspace, workspace_bytes_, &kZero, d_.out.get(), arrays.result),
        "starting a convolution");
    // Done by a built-in kernel: cuDNN fuses the bias with some algorithms only, and its relu may lose a NaN.
    if (shape_.bias || task_.relu) {
      bias_relu(stream, task_.images, shape_.out_channels, shape_.out_height * shape_.out_width,
                shape_.bias ? arrays.bias : nullptr, task_.relu, arrays.result);
    }
  }

  void backward_weights(Stream& stream, const LibraryArrays& arrays) const {
    check_cudnn(cudnn().backward_filter(handle_->get(), &kOne, d_.in.get(), arrays.in, d_.out.get(),
                                        arrays.grad_out, d_.conv.get(), weights_, arrays.workspace,
                                        workspace_bytes_, &kZero, d_.weight.get(), arrays.result),
                "starting a convolution's gradient");
    if (!shape_.bias) return;
    float* bias_gradient = arrays.result + shape_.weights();
    float* gradient = copy_bytes_ > 0 ? aligned_copy(arrays) : bias_gradient;
    check_cudnn(cudnn().backward_bias(handle_->get(), &kOne, d_.out.get(), arrays.grad_out, &kZero,
                                      d_.bias.get(), gradient),
                "starting a bias' gradient");
    if (copy_bytes_ > 0) stream.copy(bias_gradient, gradient, copy_bytes_);
  }

  void backward_input(Stream& stream, const LibraryArrays& arrays) const {
    const float* weight = aligned_weight(stream, arrays);
    check_cudnn(
        cudnn().backward_data(handle_->get(), &kOne, d_.weight.get(), weight, d_.out.get(), arrays.grad_out,
                              d_.conv.get(), input_, arrays.workspace, workspace_bytes_,
                              task_.add ? &kOne : &kZero, d_.in.get(), arrays.result),
        "starting a convolution's gradient");
  }

  // Takes the first algorithm in the library's order of expected speed whose workspace fits and that is
  // deterministic, if the task demands that. `list` asks the library for its algorithms of one direction,
  // `workspace` for the workspace of one in full float32; `descriptors`: in the order of their arguments.
  template <class Result, class List, class Workspace, class Algorithm, class... Descriptors>
  bool choose_between(List list, Workspace workspace, std::size_t limit, Algorithm& algorithm,
                      Descriptors... descriptors) {
    constexpr int kMax = 16;
    Result results[kMax];
    int count = 0;
    if (list(handle_->get(), descriptors..., kMax, &count, results) != CUDNN_STATUS_SUCCESS) return false;
    for (int i = 0; i < count; ++i) {
      const Result& result = results[i];
      const bool ordered = result.determinism == CUDNN_DETERMINISTIC;
      if (result.status != CUDNN_STATUS_SUCCESS || (task_.deterministic && !ordered)) continue;
      if (result.mathType != CUDNN_FMA_MATH && result.mathType != CUDNN_DEFAULT_MATH) continue;
      std::size_t bytes = 0;
      if (workspace(handle_->get(), descriptors..., result.algo, &bytes) != CUDNN_STATUS_SUCCESS ||
          bytes > limit)
        continue;
      algorithm = result.algo;
      workspace_bytes_ = bytes;
      deterministic_ = ordered;
      return true;
    }
    return false;
  }

  // The aligned copy in the workspace.
  float* aligned_copy(const LibraryArrays& arrays) const {
    return reinterpret_cast<float*>(arrays.workspace + rounded(workspace_bytes_));
  }
  const float* aligned_weight(Stream& stream, const LibraryArrays& arrays) const {
    if (copy_bytes_ == 0) return arrays.weight;
    stream.copy(aligned_copy(arrays), arrays.weight, copy_bytes_);
    return aligned_copy(arrays);
  }

  static constexpr float kOne = 1, kZero = 0;
  CudnnHandle handle_;
  ConvShape shape_;
  LibraryTask task_;
  std::size_t copy_bytes_;
  Descriptors d_;
  // The algorithm, of the task's direction.
  cudnnConvolutionFwdAlgo_t forward_{};
  cudnnConvolutionBwdFilterAlgo_t weights_{};
  cudnnConvolutionBwdDataAlgo_t input_{};
  std::size_t workspace_bytes_ = 0;
  bool deterministic_ = true;
};

class ConvLibrary final : public LayerLibrary<ConvShape> {
 public:
  std::string name() const override { return "cuDNN " + cudnn().version; }

  std::unique_ptr<LibraryPlan> plan(const ConvShape& shape, const LibraryTask& task,
                                    std::size_t workspace_limit) const override {
    if (task.images <= 0) return nullptr;
    try {
      auto plan = std::make_unique<ConvPlan>(handle_, shape, task);
      return plan->choose(workspace_limit) ? std::move(plan) : nullptr;
    } catch (const DeviceError&) {
      return nullptr;  // cuDNN does not take the shape
    }
  }

 private:
  const CudnnHandle handle_ = std::make_shared<CudnnContext>();
};

}  // namespace

Cudnn::Cudnn() : file({"libcudnn.so." + std::to_string(CUDNN_MAJOR)}) {
  // What it opens at the first call of a function that is used; without one of them it ends the process.
  std::vector<std::string> parts;
  for (const char* part : {"graph", "ops", "cnn"})
    parts.push_back("libcudnn_" + std::string(part) + ".so." + std::to_string(CUDNN_MAJOR));
  file.require_parts(parts);
  if (file) version = file.require_version("cuDNN", get_version(), CUDNN_MAJOR);
}

const Cudnn& cudnn() {
  static const Cudnn library;
  return library;
}

template <>
std::shared_ptr<const LayerLibrary<ConvShape>> open_library(int device) {
  if (!cudnn().file) return nullptr;
  use_device(device);
  try {
    return std::make_shared<ConvLibrary>();
  } catch (const DeviceError&) {
    return nullptr;  // cuDNN does not support the device, or there is too little memory for a handle
  }
}

}  // namespace sweep::cuda
