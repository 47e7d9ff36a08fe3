// cuDNN, opened at run time so that the program starts without it. Uses the functions for single layers,
// which version 9 still has besides its graph API: they let the caller fix the algorithm.
#pragma once

#include <cudnn.h>

#include <string>

#include "core/kernels/cuda/libraries/library.h"
#include "core/kernels/cuda/libraries/library_file.h"

namespace sweep::cuda {

/// The library's file and the functions that are used. If `file` is open, all of them are set.
struct Cudnn {
  Cudnn();

  LibraryFile file;
  std::string version;  // "9.19.0"
  SWEEP_LIBRARY_FUNCTION(get_version, cudnnGetVersion);
  SWEEP_LIBRARY_FUNCTION(error_string, cudnnGetErrorString);
  SWEEP_LIBRARY_FUNCTION(create, cudnnCreate);
  SWEEP_LIBRARY_FUNCTION(destroy, cudnnDestroy);
  SWEEP_LIBRARY_FUNCTION(set_stream, cudnnSetStream);
  SWEEP_LIBRARY_FUNCTION(tensor_create, cudnnCreateTensorDescriptor);
  SWEEP_LIBRARY_FUNCTION(tensor_destroy, cudnnDestroyTensorDescriptor);
  SWEEP_LIBRARY_FUNCTION(tensor_set, cudnnSetTensor4dDescriptor);
  SWEEP_LIBRARY_FUNCTION(filter_create, cudnnCreateFilterDescriptor);
  SWEEP_LIBRARY_FUNCTION(filter_destroy, cudnnDestroyFilterDescriptor);
  SWEEP_LIBRARY_FUNCTION(filter_set, cudnnSetFilter4dDescriptor);
  SWEEP_LIBRARY_FUNCTION(conv_create, cudnnCreateConvolutionDescriptor);
  SWEEP_LIBRARY_FUNCTION(conv_destroy, cudnnDestroyConvolutionDescriptor);
  SWEEP_LIBRARY_FUNCTION(conv_set, cudnnSetConvolution2dDescriptor);
  SWEEP_LIBRARY_FUNCTION(conv_set_groups, cudnnSetConvolutionGroupCount);
  SWEEP_LIBRARY_FUNCTION(conv_set_math, cudnnSetConvolutionMathType);
  SWEEP_LIBRARY_FUNCTION(forward_algorithms, cudnnGetConvolutionForwardAlgorithm_v7);
  SWEEP_LIBRARY_FUNCTION(forward_workspace, cudnnGetConvolutionForwardWorkspaceSize);
  SWEEP_LIBRARY_FUNCTION(forward, cudnnConvolutionForward);
  SWEEP_LIBRARY_FUNCTION(filter_algorithms, cudnnGetConvolutionBackwardFilterAlgorithm_v7);
  SWEEP_LIBRARY_FUNCTION(filter_workspace, cudnnGetConvolutionBackwardFilterWorkspaceSize);
  SWEEP_LIBRARY_FUNCTION(backward_filter, cudnnConvolutionBackwardFilter);
  SWEEP_LIBRARY_FUNCTION(backward_bias, cudnnConvolutionBackwardBias);
  SWEEP_LIBRARY_FUNCTION(data_algorithms, cudnnGetConvolutionBackwardDataAlgorithm_v7);
  SWEEP_LIBRARY_FUNCTION(data_workspace, cudnnGetConvolutionBackwardDataWorkspaceSize);
  SWEEP_LIBRARY_FUNCTION(backward_data, cudnnConvolutionBackwardData);
};

/// Opened once per process, and never closed.
const Cudnn& cudnn();

}  // namespace sweep::cuda
