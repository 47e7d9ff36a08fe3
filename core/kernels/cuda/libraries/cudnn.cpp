#include "core/kernels/cuda/libraries/cudnn.h"

#include <vector>

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
  // What it opens at the first call of a function that is used; without one of them it ends the process.
  std::vector<std::string> parts;
  for (const char* part : {"graph", "ops", "cnn"})
    parts.push_back("libcudnn_" + std::string(part) + ".so." + std::to_string(CUDNN_MAJOR));
  file.require_parts(parts);
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
  throw DeviceError(std::string("cuda: error of cuDNN while ") + doing + ": " + cudnn().error_string(status) +
                    "; SWEEP_CUDA_KERNELS=own trains without it");
}

std::shared_ptr<const LayerLibrary<ConvShape>> open_cudnn() {
  if (!cudnn().file) return nullptr;
  try {
    return make_cudnn_conv(make_handle());
  } catch (const DeviceError&) {
    return nullptr;  // cuDNN does not support the device, or there is too little memory for a handle
  }
}

}  // namespace sweep::cuda
