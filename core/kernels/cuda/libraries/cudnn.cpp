#include "core/kernels/cuda/libraries/cudnn.h"

#include "core/base/error.h"
#include "core/kernels/cuda/libraries/cudnn_objects.h"

namespace sweep::cuda {
namespace {

CudnnHandle make_handle() {
  cudnnHandle_t handle = nullptr;
  check_cudnn(cudnn().create(&handle), "opening it");
  return std::make_shared<CudnnContext>(handle);
}

}  // namespace

Cudnn::Cudnn() : file({"libcudnn.so." + std::to_string(CUDNN_MAJOR)}) {
  file.find("cudnnGetVersion", get_version);
  file.find("cudnnGetErrorString", error_string);
  file.find("cudnnCreate", create);
  file.find("cudnnDestroy", destroy);
  file.find("cudnnSetStream", set_stream);
  file.find("cudnnCreateTensorDescriptor", tensor_create);
  file.find("cudnnDestroyTensorDescriptor", tensor_destroy);
  file.find("cudnnSetTensor4dDescriptor", tensor_set);
  file.find("cudnnCreateFilterDescriptor", filter_create);
  file.find("cudnnDestroyFilterDescriptor", filter_destroy);
  file.find("cudnnSetFilter4dDescriptor", filter_set);
  file.find("cudnnCreateConvolutionDescriptor", conv_create);
  file.find("cudnnDestroyConvolutionDescriptor", conv_destroy);
  file.find("cudnnSetConvolution2dDescriptor", conv_set);
  file.find("cudnnSetConvolutionGroupCount", conv_set_groups);
  file.find("cudnnSetConvolutionMathType", conv_set_math);
  file.find("cudnnGetConvolutionForwardAlgorithm_v7", forward_algorithms);
  file.find("cudnnGetConvolutionForwardWorkspaceSize", forward_workspace);
  file.find("cudnnConvolutionForward", forward);
  file.find("cudnnGetConvolutionBackwardFilterAlgorithm_v7", filter_algorithms);
  file.find("cudnnGetConvolutionBackwardFilterWorkspaceSize", filter_workspace);
  file.find("cudnnConvolutionBackwardFilter", backward_filter);
  file.find("cudnnConvolutionBackwardBias", backward_bias);
  file.find("cudnnGetConvolutionBackwardDataAlgorithm_v7", data_algorithms);
  file.find("cudnnGetConvolutionBackwardDataWorkspaceSize", data_workspace);
  file.find("cudnnConvolutionBackwardData", backward_data);
  file.find("cudnnDeriveBNTensorDescriptor", norm_derive);
  file.find("cudnnBatchNormalizationForwardTraining", norm_train);
  file.find("cudnnBatchNormalizationForwardInference", norm_evaluate);
  file.find("cudnnBatchNormalizationBackward", norm_backward);
  file.find("cudnnCreatePoolingDescriptor", pool_create);
  file.find("cudnnDestroyPoolingDescriptor", pool_destroy);
  file.find("cudnnSetPooling2dDescriptor", pool_set);
  file.find("cudnnGetPooling2dForwardOutputDim", pool_output);
  file.find("cudnnPoolingForward", pool_forward);
  file.find("cudnnPoolingBackward", pool_backward);
  if (!file) return;
  const std::size_t found = get_version();
  version = std::to_string(found / 10000) + "." + std::to_string(found / 100 % 100) + "." +
            std::to_string(found % 100);
  if (found / 10000 != CUDNN_MAJOR)
    file.refuse("is cuDNN " + version + ", not " + std::to_string(CUDNN_MAJOR));
}

const Cudnn& cudnn() {
  static const Cudnn library;
  return library;
}

void check_cudnn(cudnnStatus_t status, const char* doing) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  throw DeviceError(std::string("cuda: error of cuDNN while ") + doing + ": " + cudnn().error_string(status));
}

void open_cudnn(Libraries& libraries) {
  if (!cudnn().file) return;
  try {
    const CudnnHandle handle = make_handle();
    libraries.conv = make_cudnn_conv(handle);
    libraries.batch_norm = make_cudnn_batch_norm(handle);
    libraries.pool = make_cudnn_pool(handle);
  } catch (const DeviceError&) {
    // cuDNN does not support the device, or there is too little memory for a handle.
  }
}

}  // namespace sweep::cuda
