// cuDNN, opened at run time so that the program starts without it. Uses the functions for single layers,
// which version 9 still has beside its graph API: they let the caller fix the algorithm.
#pragma once

#include <cudnn.h>

#include <memory>
#include <string>

#include "core/kernels/cuda/libraries/library.h"
#include "core/kernels/cuda/libraries/library_file.h"

namespace sweep::cuda {

/// The library's file and the functions that are used. If `file` is open, all of them are set.
struct Cudnn {
  Cudnn();

  LibraryFile file;
  std::string version;  // "9.19.0"
  decltype(::cudnnGetVersion)* get_version = nullptr;
  decltype(::cudnnGetErrorString)* error_string = nullptr;
  decltype(::cudnnCreate)* create = nullptr;
  decltype(::cudnnDestroy)* destroy = nullptr;
  decltype(::cudnnSetStream)* set_stream = nullptr;
  decltype(::cudnnCreateTensorDescriptor)* tensor_create = nullptr;
  decltype(::cudnnDestroyTensorDescriptor)* tensor_destroy = nullptr;
  decltype(::cudnnSetTensor4dDescriptor)* tensor_set = nullptr;
  decltype(::cudnnCreateFilterDescriptor)* filter_create = nullptr;
  decltype(::cudnnDestroyFilterDescriptor)* filter_destroy = nullptr;
  decltype(::cudnnSetFilter4dDescriptor)* filter_set = nullptr;
  decltype(::cudnnCreateConvolutionDescriptor)* conv_create = nullptr;
  decltype(::cudnnDestroyConvolutionDescriptor)* conv_destroy = nullptr;
  decltype(::cudnnSetConvolution2dDescriptor)* conv_set = nullptr;
  decltype(::cudnnSetConvolutionGroupCount)* conv_set_groups = nullptr;
  decltype(::cudnnSetConvolutionMathType)* conv_set_math = nullptr;
  decltype(::cudnnGetConvolutionForwardAlgorithm_v7)* forward_algorithms = nullptr;
  decltype(::cudnnGetConvolutionForwardWorkspaceSize)* forward_workspace = nullptr;
  decltype(::cudnnConvolutionForward)* forward = nullptr;
  decltype(::cudnnGetConvolutionBackwardFilterAlgorithm_v7)* filter_algorithms = nullptr;
  decltype(::cudnnGetConvolutionBackwardFilterWorkspaceSize)* filter_workspace = nullptr;
  decltype(::cudnnConvolutionBackwardFilter)* backward_filter = nullptr;
  decltype(::cudnnConvolutionBackwardBias)* backward_bias = nullptr;
  decltype(::cudnnGetConvolutionBackwardDataAlgorithm_v7)* data_algorithms = nullptr;
  decltype(::cudnnGetConvolutionBackwardDataWorkspaceSize)* data_workspace = nullptr;
  decltype(::cudnnConvolutionBackwardData)* backward_data = nullptr;
};

/// Opened once per process, and never closed.
const Cudnn& cudnn();

/// cuDNN for the current device; nullptr if it is missing or does not support the device.
std::shared_ptr<const LayerLibrary<ConvShape>> open_cudnn();

}  // namespace sweep::cuda
