// Pooling with cuDNN. Max pooling uses the mode whose gradients have a fixed order. cuDNN does not document
// which of several equal maxima gets the gradient, so a probe compares it with PyTorch's rule, which the
// built-in kernels follow.
#include <limits>
#include <vector>

#include "core/base/error.h"
#include "core/kernels/cuda/libraries/cudnn_objects.h"

namespace sweep::cuda {
namespace {

// The layer as fixed windows; nothing for adaptive pooling whose windows differ in size.
std::optional<PoolShape> windows_of(const PoolLayer& layer) {
  PoolShape s = layer.shape;
  if (layer.average != Average::kAdaptive) return s;
  if (s.in_height % s.out_height != 0 || s.in_width % s.out_width != 0) return std::nullopt;
  s.kernel_height = s.stride_y = s.in_height / s.out_height;
  s.kernel_width = s.stride_x = s.in_width / s.out_width;
  s.pad_y = s.pad_x = 0;
  return s;
}

cudnnPoolingMode_t mode_of(const PoolLayer& layer) {
  if (!layer.average) return CUDNN_POOLING_MAX_DETERMINISTIC;
  return *layer.average == Average::kWithPadding ? CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING
                                                 : CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING;
}

class Pooling {
 public:
  Pooling(const PoolShape& s, cudnnPoolingMode_t mode) {
    check_cudnn(cudnn().pool_create(&pooling_), "describing a pooling");
    const cudnnStatus_t status = cudnn().pool_set(pooling_, mode, CUDNN_PROPAGATE_NAN, s.kernel_height,
                                                  s.kernel_width, s.pad_y, s.pad_x, s.stride_y, s.stride_x);
    if (status != CUDNN_STATUS_SUCCESS) cudnn().pool_destroy(pooling_);
    check_cudnn(status, "describing a pooling");
  }
  ~Pooling() { cudnn().pool_destroy(pooling_); }
  Pooling(const Pooling&) = delete;
  Pooling& operator=(const Pooling&) = delete;
  cudnnPoolingDescriptor_t get() const { return pooling_; }

 private:
  cudnnPoolingDescriptor_t pooling_ = nullptr;
};

class PoolPlan final : public LibraryPlan {
 public:
  PoolPlan(CudnnHandle handle, const PoolShape& s, cudnnPoolingMode_t mode, const LibraryTask& task)
      : handle_(std::move(handle)),
        task_(task),
        is_max_(mode == CUDNN_POOLING_MAX_DETERMINISTIC),
        in_(task.images, s.channels, s.in_height, s.in_width),
        out_(task.images, s.channels, s.out_height, s.out_width),
        pooling_(s, mode) {
    int images = 0, channels = 0, height = 0, width = 0;
    check_cudnn(cudnn().pool_output(pooling_.get(), in_.get(), &images, &channels, &height, &width),
                "describing a pooling");
    if (images != task.images || channels != s.channels || height != s.out_height || width != s.out_width)
      throw DeviceError("cuda: cuDNN has other windows");
  }

  std::size_t workspace_bytes() const override { return 0; }
  bool deterministic() const override { return true; }

  void run(Stream& stream, const LibraryArrays& a) const override {
    constexpr float kOne = 1, kZero = 0;
    const auto lock = use_stream(handle_, stream);
    if (task_.direction == Direction::kForward) {
      check_cudnn(cudnn().pool_forward(handle_->get(), pooling_.get(), &kOne, in_.get(), a.in, &kZero,
                                       out_.get(), a.result),
                  "starting a pooling");
      return;
    }
    // Average pooling reads neither input nor output, but the call demands addresses.
    const float *in = is_max_ ? a.in : a.result, *out = is_max_ ? a.out : a.grad_out;
    check_cudnn(
        cudnn().pool_backward(handle_->get(), pooling_.get(), &kOne, out_.get(), out, out_.get(), a.grad_out,
                              in_.get(), in, task_.add ? &kOne : &kZero, in_.get(), a.result),
        "starting a pooling's gradient");
  }

 private:
  CudnnHandle handle_;
  LibraryTask task_;
  bool is_max_;
  CudnnTensor in_, out_;
  Pooling pooling_;
};

class PoolLibrary final : public LayerLibrary<PoolLayer> {
 public:
  explicit PoolLibrary(const CudnnHandle& handle) : handle_(handle), has_maxima_(probe_maxima()) {}

  std::string name() const override { return cudnn_name(); }

  std::unique_ptr<LibraryPlan> plan(const PoolLayer& layer, const LibraryTask& task,
                                    std::size_t /*workspace_limit*/) const override {
    if (!layer.average && !has_maxima_) return nullptr;
    return planned(layer, task);
  }

 private:
  std::unique_ptr<LibraryPlan> planned(const PoolLayer& layer, const LibraryTask& task) const {
    const auto windows = windows_of(layer);
    if (!windows || task.images <= 0 ||
        (task.direction != Direction::kForward && task.direction != Direction::kBackwardInput))
      return nullptr;
    try {
      return std::make_unique<PoolPlan>(handle_, *windows, mode_of(layer), task);
    } catch (const DeviceError&) {
      return nullptr;  // cuDNN does not take the shape
    }
  }

  // Whether maxima and gradients equal those of the built-in kernels, with overlapping windows that contain
  // equal values, infinities and NaNs.
  bool probe_maxima() const {
    constexpr int kExtent = 9, kOut = 5, kChannels = 3;
    constexpr std::size_t kIns = kChannels * kExtent * kExtent, kOuts = kChannels * kOut * kOut;
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    const PoolLayer layer{{kChannels, kExtent, kExtent, kOut, kOut, 3, 3, 2, 2, 1, 1}, std::nullopt};
    std::vector<float> in(kIns), grad_out(kOuts);
    for (std::size_t i = 0; i < kIns; ++i) in[i] = static_cast<float>(i * i % 7 / 3);  // 0, 1 and 2
    for (std::size_t i = 0; i < kExtent * kExtent; ++i) in[i] = i % 2 == 0 ? 0.0f : -0.0f;
    for (std::size_t i = kIns - kExtent * kExtent; i < kIns; i += 5)
      in[i] = i % 3 == 0 ? -kInfinity : i % 3 == 1 ? std::numeric_limits<float>::quiet_NaN() : kInfinity;
    for (std::size_t i = 0; i < kOuts; ++i)
      grad_out[i] = static_cast<float>(1 << i % 16);  // powers of two: a sum tells which of them are in it
    const auto forward = planned(layer, {.direction = Direction::kForward, .images = 1}),
               input = planned(layer, {.direction = Direction::kBackwardInput, .images = 1});
    if (forward == nullptr || input == nullptr) return false;
    Stream stream;
    const auto array = [](std::size_t floats) { return Array<float>(floats, "a test of cuDNN"); };
    const Array<float> device_in = array(kIns), device_grad_out = array(kOuts),
                       out[2] = {array(kOuts), array(kOuts)}, grad_in[2] = {array(kIns), array(kIns)};
    const Array<std::int32_t> argmax(kOuts, "a test of cuDNN");
    stream.upload(device_in.data(), in.data(), kIns * sizeof(float));
    stream.upload(device_grad_out.data(), grad_out.data(), kOuts * sizeof(float));
    max_pool_forward(stream, layer.shape, 1, device_in.data(), out[0].data(), argmax.data());
    max_pool_backward(stream, layer.shape, 1, device_grad_out.data(), argmax.data(), false,
                      grad_in[0].data());
    try {
      forward->run(stream, {.in = device_in.data(), .result = out[1].data()});
      input->run(stream, {.in = device_in.data(),
                          .out = out[1].data(),
                          .grad_out = device_grad_out.data(),
                          .result = grad_in[1].data()});
    } catch (const DeviceError&) {
      return false;
    }
    return same(stream, out[0], out[1]) && same(stream, grad_in[0], grad_in[1]);
  }

  static bool same(Stream& stream, const Array<float>& a, const Array<float>& b) {
    std::vector<float> values[2] = {std::vector<float>(a.size()), std::vector<float>(b.size())};
    stream.download(values[0].data(), a.data(), a.size() * sizeof(float));
    stream.download(values[1].data(), b.data(), b.size() * sizeof(float));
    for (std::size_t i = 0; i < values[0].size(); ++i) {
      const float x = values[0][i], y = values[1][i];
      if (x != y && (x == x || y == y)) return false;
    }
    return true;
  }

  CudnnHandle handle_;
  bool has_maxima_;
};

}  // namespace

std::shared_ptr<const LayerLibrary<PoolLayer>> make_cudnn_pool(const CudnnHandle& handle) {
  return std::make_shared<PoolLibrary>(handle);
}

}  // namespace sweep::cuda
