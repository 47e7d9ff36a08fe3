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
  SWEEP_LIBRARY_FUNCTION(get_version, ncclGetVersion);
  SWEEP_LIBRARY_FUNCTION(error_string, ncclGetErrorString);
  SWEEP_LIBRARY_FUNCTION(last_error, ncclGetLastError);
  SWEEP_LIBRARY_FUNCTION(unique_id, ncclGetUniqueId);
  SWEEP_LIBRARY_FUNCTION(init_rank, ncclCommInitRankConfig);
  SWEEP_LIBRARY_FUNCTION(async_error, ncclCommGetAsyncError);
  SWEEP_LIBRARY_FUNCTION(finalize, ncclCommFinalize);
  SWEEP_LIBRARY_FUNCTION(destroy, ncclCommDestroy);
  SWEEP_LIBRARY_FUNCTION(abort, ncclCommAbort);
  SWEEP_LIBRARY_FUNCTION(group_start, ncclGroupStart);
  SWEEP_LIBRARY_FUNCTION(group_end, ncclGroupEnd);
  SWEEP_LIBRARY_FUNCTION(broadcast, ncclBroadcast);
  SWEEP_LIBRARY_FUNCTION(all_gather, ncclAllGather);
};

/// Opened once per process, and never closed.
const Nccl& nccl();

}  // namespace sweep::cuda
