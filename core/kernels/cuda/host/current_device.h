// The stand-in's devices.
#pragma once

namespace sweep::cuda::host {

/// As many as the stand-in has.
inline constexpr int kDevices = 8;

/// Those that CUDA_VISIBLE_DEVICES does not hide.
int device_count();

/// What use_device() has set for the calling thread, at first 0.
int current_device();

}  // namespace sweep::cuda::host
