// What a GPU's memory does for one access of a warp.
#pragma once

#include <array>
#include <cstdint>

namespace sweep::cuda::host {

inline constexpr unsigned kWarpLanes = 32;

/// One instruction that reads or writes memory, for the lanes of a warp that execute it together.
struct WarpRequest {
  std::uint32_t lanes = 0;                                // bit i: lane i takes part
  unsigned bytes = 0;                                     // that a lane accesses: 1, 2, 4, 8 or 16
  std::array<std::uintptr_t, kWarpLanes> addresses = {};  // multiples of `bytes`
};

/// How often the memory has to be accessed, and how often it would be if no lanes were in each other's way.
struct RequestCost {
  unsigned cost = 0, ideal = 0;
};

/// Wavefronts of shared memory, which has 32 banks of 4 bytes: in one wavefront each bank delivers one word,
/// to all lanes that want it. Lanes that access 8 bytes come in two halves of the warp, those that access 16
/// bytes in four quarters (CUDA C++ Programming Guide, "Shared Memory", of compute capability 5.x and later).
/// That halves may be merged where their words are the same is not counted on.
RequestCost shared_wavefronts(const WarpRequest& request);

/// Sectors of 32 bytes of device memory; ideal: as many as the bytes that are wanted fill.
RequestCost device_sectors(const WarpRequest& request);

}  // namespace sweep::cuda::host
