// The file of NCCL and the functions that are used.
#pragma once

#include <nccl.h>

#include <string>

#include "core/kernels/cuda/libraries/library_file.h"

namespace sweep::cuda {

/// If `file` is open, all functions are set.
struct Nccl {
  Nccl();

  LibraryFile file;
  std::string version;  // "2.28.9"
  decltype(::ncclGetVersion)* get_version = nullptr;
  decltype(::ncclGetErrorString)* error_string = nullptr;
  decltype(::ncclGetLastError)* last_error = nullptr;
  decltype(::ncclGetUniqueId)* unique_id = nullptr;
  decltype(::ncclCommInitRankConfig)* init_rank = nullptr;
  decltype(::ncclCommGetAsyncError)* async_error = nullptr;
  decltype(::ncclCommFinalize)* finalize = nullptr;
  decltype(::ncclCommDestroy)* destroy = nullptr;
  decltype(::ncclCommAbort)* abort = nullptr;
  decltype(::ncclGroupStart)* group_start = nullptr;
  decltype(::ncclGroupEnd)* group_end = nullptr;
  decltype(::ncclBroadcast)* broadcast = nullptr;
  decltype(::ncclAllGather)* all_gather = nullptr;
};

/// Opened once per process, and never closed.
const Nccl& nccl();

}  // namespace sweep::cuda
