// Batch normalisation with cuDNN: CUDNN_BATCHNORM_SPATIAL, the operation of torch.nn.BatchNorm2d. Its running
// variance is unbiased (n − 1), as PyTorch's, and its sums have a fixed order. Only its own backward
// understands what forward saves.
#include "core/base/error.h"
#include "core/kernels/cuda/libraries/cudnn_objects.h"

namespace sweep::cuda {
namespace {

constexpr cudnnBatchNormMode_t kMode = CUDNN_BATCHNORM_SPATIAL;
constexpr float kOne = 1, kZero = 0;

class BatchNormPlan final : public LibraryPlan {
 public:
  BatchNormPlan(CudnnHandle handle, const BatchNormShape& shape, const LibraryTask& task)
      : handle_(std::move(handle)),
        shape_(shape),
        task_(task),
        values_(task.images, shape.channels, 1, shape.plane),
        per_channel_(1, shape.channels, 1, 1) {
    check_cudnn(cudnn().norm_derive(per_channel_.get(), values_.get(), kMode), "describing an array");
  }

  std::size_t workspace_bytes() const override { return 0; }
  bool deterministic() const override { return true; }

  void run(Stream& stream, const LibraryArrays& arrays) const override {
    const auto lock = use_stream(handle_, stream);
    check_cudnn(start(arrays), "starting a batch normalisation");
  }

 private:
  cudnnStatus_t start(const LibraryArrays& a) const {
    const auto eps = static_cast<double>(shape_.eps), momentum = static_cast<double>(shape_.momentum);
    switch (task_.direction) {
      case Direction::kForward:
        return cudnn().norm_train(handle_->get(), kMode, &kOne, &kZero, values_.get(), a.in, values_.get(),
                                  a.result, per_channel_.get(), a.weight, a.bias, momentum, a.running_mean,
                                  a.running_var, eps, a.mean, a.inverse);
      case Direction::kInference:
        return cudnn().norm_evaluate(handle_->get(), kMode, &kOne, &kZero, values_.get(), a.in, values_.get(),
                                     a.result, per_channel_.get(), a.weight, a.bias, a.running_mean,
                                     a.running_var, eps);
      default:
        return cudnn().norm_backward(handle_->get(), kMode, &kOne, task_.add ? &kOne : &kZero, &kOne, &kZero,
                                     values_.get(), a.in, values_.get(), a.grad_out, values_.get(), a.result,
                                     per_channel_.get(), a.weight, a.grad_parameters,
                                     a.grad_parameters + shape_.channels, eps, a.mean, a.inverse);
    }
  }

  CudnnHandle handle_;
  BatchNormShape shape_;
  LibraryTask task_;
  CudnnTensor values_, per_channel_;
};

class BatchNormLibrary final : public LayerLibrary<BatchNormShape> {
 public:
  explicit BatchNormLibrary(const CudnnHandle& handle) : handle_(handle) {}

  std::string name() const override { return cudnn_name(); }

  std::unique_ptr<LibraryPlan> plan(const BatchNormShape& shape, const LibraryTask& task,
                                    std::size_t /*workspace_limit*/) const override {
    if (task.images <= 0 || task.direction == Direction::kBackwardWeights) return nullptr;
    // The unbiased variance of a single value does not exist.
    if (task.direction != Direction::kInference && std::int64_t{task.images} * shape.plane < 2)
      return nullptr;
    if (static_cast<double>(shape.eps) < CUDNN_BN_MIN_EPSILON) return nullptr;
    try {
      return std::make_unique<BatchNormPlan>(handle_, shape, task);
    } catch (const DeviceError&) {
      return nullptr;  // cuDNN does not take the shape
    }
  }

 private:
  CudnnHandle handle_;
};

}  // namespace

std::shared_ptr<const LayerLibrary<BatchNormShape>> make_cudnn_batch_norm(const CudnnHandle& handle) {
  return std::make_shared<BatchNormLibrary>(handle);
}

}  // namespace sweep::cuda
