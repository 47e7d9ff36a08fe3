// What the users of cuDNN share: the handle, tensor descriptors, error checks.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "core/kernels/cuda/libraries/cudnn.h"
#include "core/kernels/cuda/libraries/library.h"

namespace sweep::cuda {

/// A cuDNN handle and its lock. Engines of several threads share one handle per device, but cuDNN lets only
/// one thread at a time use a handle, and the stream is a property of the handle.
struct CudnnContext {
  explicit CudnnContext(cudnnHandle_t opened) : handle(opened) {}
  ~CudnnContext() { cudnn().destroy(handle); }
  CudnnContext(const CudnnContext&) = delete;
  CudnnContext& operator=(const CudnnContext&) = delete;

  cudnnHandle_t get() const { return handle; }
  cudnnHandle_t handle;
  std::mutex mutex;
};
using CudnnHandle = std::shared_ptr<CudnnContext>;

/// Throws DeviceError, with what was being done, unless `status` is success.
void check_cudnn(cudnnStatus_t status, const char* doing);

/// "cuDNN 9.19.0"
inline std::string cudnn_name() { return "cuDNN " + cudnn().version; }

/// Lets `handle` put its work on `stream` as long as the returned lock is held.
[[nodiscard]] inline std::unique_lock<std::mutex> use_stream(const CudnnHandle& handle,
                                                             const Stream& stream) {
  std::unique_lock lock(handle->mutex);
  check_cudnn(cudnn().set_stream(handle->get(), static_cast<cudaStream_t>(native_stream(stream))),
              "choosing a stream");
  return lock;
}

/// Describes floats [images][channels][height][width] without gaps. Throws DeviceError for a size that cuDNN
/// does not take.
class CudnnTensor {
 public:
  CudnnTensor(int images, int channels, int height, int width) {
    check_cudnn(cudnn().tensor_create(&tensor_), "describing an array");
    const cudnnStatus_t status =
        cudnn().tensor_set(tensor_, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, images, channels, height, width);
    if (status != CUDNN_STATUS_SUCCESS) cudnn().tensor_destroy(tensor_);
    check_cudnn(status, "describing an array");
  }
  ~CudnnTensor() { cudnn().tensor_destroy(tensor_); }
  CudnnTensor(const CudnnTensor&) = delete;
  CudnnTensor& operator=(const CudnnTensor&) = delete;
  cudnnTensorDescriptor_t get() const { return tensor_; }

 private:
  cudnnTensorDescriptor_t tensor_ = nullptr;
};

/// For the device that use_device() chose.
std::shared_ptr<const LayerLibrary<ConvShape>> make_cudnn_conv(const CudnnHandle& handle);

}  // namespace sweep::cuda
