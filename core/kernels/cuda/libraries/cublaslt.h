// cuBLASLt, opened at run time so that the program starts without it.
#pragma once

#include <cublasLt.h>

#include <memory>
#include <string>

#include "core/kernels/cuda/libraries/library.h"
#include "core/kernels/cuda/libraries/library_file.h"

namespace sweep::cuda {

/// The library's file and the functions that are used. If `file` is open, all of them are set.
struct CublasLt {
  CublasLt();

  LibraryFile file;
  std::string version;  // "13.1.0"
  decltype(::cublasLtGetVersion)* get_version = nullptr;
  decltype(::cublasLtGetStatusString)* status_string = nullptr;
  decltype(::cublasLtCreate)* create = nullptr;
  decltype(::cublasLtDestroy)* destroy = nullptr;
  decltype(::cublasLtMatmulDescCreate)* desc_create = nullptr;
  decltype(::cublasLtMatmulDescDestroy)* desc_destroy = nullptr;
  decltype(::cublasLtMatmulDescSetAttribute)* desc_set = nullptr;
  decltype(::cublasLtMatrixLayoutCreate)* layout_create = nullptr;
  decltype(::cublasLtMatrixLayoutDestroy)* layout_destroy = nullptr;
  decltype(::cublasLtMatmulPreferenceCreate)* preference_create = nullptr;
  decltype(::cublasLtMatmulPreferenceDestroy)* preference_destroy = nullptr;
  decltype(::cublasLtMatmulPreferenceSetAttribute)* preference_set = nullptr;
  decltype(::cublasLtMatmulAlgoGetHeuristic)* heuristic = nullptr;
  decltype(::cublasLtMatmulAlgoConfigGetAttribute)* algo_get = nullptr;
  decltype(::cublasLtMatmul)* matmul = nullptr;
};

/// Opened once per process, and never closed.
const CublasLt& cublaslt();

/// cuBLASLt for the current device; nullptr if it is missing or does not support the device.
std::shared_ptr<const LayerLibrary<LinearShape>> open_cublaslt();

}  // namespace sweep::cuda
