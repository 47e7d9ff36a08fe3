// cuBLASLt, opened at run time so that the program starts without it.
#pragma once

#include <cublasLt.h>

#include <string>

#include "core/kernels/cuda/libraries/library.h"
#include "core/kernels/cuda/libraries/library_file.h"

namespace sweep::cuda {

/// The library's file and the functions that are used. If `file` is open, all of them are set.
struct CublasLt {
  CublasLt();

  LibraryFile file;
  std::string version;  // "13.1.0"
  SWEEP_LIBRARY_FUNCTION(get_version, cublasLtGetVersion);
  SWEEP_LIBRARY_FUNCTION(status_string, cublasLtGetStatusString);
  SWEEP_LIBRARY_FUNCTION(create, cublasLtCreate);
  SWEEP_LIBRARY_FUNCTION(destroy, cublasLtDestroy);
  SWEEP_LIBRARY_FUNCTION(desc_create, cublasLtMatmulDescCreate);
  SWEEP_LIBRARY_FUNCTION(desc_destroy, cublasLtMatmulDescDestroy);
  SWEEP_LIBRARY_FUNCTION(desc_set, cublasLtMatmulDescSetAttribute);
  SWEEP_LIBRARY_FUNCTION(layout_create, cublasLtMatrixLayoutCreate);
  SWEEP_LIBRARY_FUNCTION(layout_destroy, cublasLtMatrixLayoutDestroy);
  SWEEP_LIBRARY_FUNCTION(preference_create, cublasLtMatmulPreferenceCreate);
  SWEEP_LIBRARY_FUNCTION(preference_destroy, cublasLtMatmulPreferenceDestroy);
  SWEEP_LIBRARY_FUNCTION(preference_set, cublasLtMatmulPreferenceSetAttribute);
  SWEEP_LIBRARY_FUNCTION(heuristic, cublasLtMatmulAlgoGetHeuristic);
  SWEEP_LIBRARY_FUNCTION(algo_get, cublasLtMatmulAlgoConfigGetAttribute);
  SWEEP_LIBRARY_FUNCTION(matmul, cublasLtMatmul);
};

/// Opened once per process, and never closed.
const CublasLt& cublaslt();

}  // namespace sweep::cuda
