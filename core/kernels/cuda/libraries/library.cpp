#include "core/kernels/cuda/libraries/library.h"

#include "core/kernels/cuda/libraries/library_file.h"
#include "core/kernels/cuda/runtime/cuda_devices.h"
#if defined(SWEEP_HAVE_CUBLASLT)
#include "core/kernels/cuda/libraries/cublaslt.h"
#endif
#if defined(SWEEP_HAVE_CUDNN)
#include "core/kernels/cuda/libraries/cudnn.h"
#endif
#if defined(SWEEP_HAVE_NCCL)
#include "core/kernels/cuda/libraries/nccl_library.h"
#endif

namespace sweep {
namespace {

[[maybe_unused]] LibraryInfo info_of(const char* name, const char* use, const cuda::LibraryFile& file,
                                     const std::string& version) {
  LibraryInfo info{.name = name, .use = use};
  if (file) {
    info.version = version;
    info.path = file.path().string();
  } else {
    info.problem = file.problem();
  }
  return info;
}

[[maybe_unused]] LibraryInfo without_headers(const char* name, const char* use, const char* header) {
  return {
      .name = name,
      .use = use,
      .problem = std::string("this build cannot use it: there was no ") + header + " when it was configured"};
}

}  // namespace

std::vector<LibraryInfo> list_cuda_libraries() {
  constexpr const char *kLinear = "wide linear layers", *kConv = "wide convolutions",
                       *kGroup = "one network on several GPUs";
  std::vector<LibraryInfo> libraries;
#if defined(SWEEP_HAVE_CUBLASLT)
  libraries.push_back(info_of("cuBLASLt", kLinear, cuda::cublaslt().file, cuda::cublaslt().version));
#else
  libraries.push_back(without_headers("cuBLASLt", kLinear, "cublasLt.h"));
#endif
#if defined(SWEEP_HAVE_CUDNN)
  libraries.push_back(info_of("cuDNN", kConv, cuda::cudnn().file, cuda::cudnn().version));
#else
  libraries.push_back(without_headers("cuDNN", kConv, "cudnn.h, version 9"));
#endif
#if defined(SWEEP_HAVE_NCCL)
  libraries.push_back(info_of("NCCL", kGroup, cuda::nccl().file, cuda::nccl().version));
#else
  libraries.push_back(without_headers("NCCL", kGroup, "nccl.h"));
#endif
  return libraries;
}

namespace cuda {

#if !defined(SWEEP_HAVE_CUBLASLT)
template <>
std::shared_ptr<const LayerLibrary<LinearShape>> open_library(int /*device*/) {
  return nullptr;
}
#endif
#if !defined(SWEEP_HAVE_CUDNN)
template <>
std::shared_ptr<const LayerLibrary<ConvShape>> open_library(int /*device*/) {
  return nullptr;
}
#endif

}  // namespace cuda
}  // namespace sweep
