// The exchange of parts between the devices of a group.
#pragma once

#include <cstddef>
#include <vector>

#include "core/kernels/cuda/libraries/nccl.h"
#include "core/kernels/cuda/runtime/device_clock.h"

namespace sweep::cuda {

/// Exchanges arrays [GradientParts::count] of so many bytes per part in the memory of each device. All
/// devices call the same functions in the same order. Throws what DeviceGroup does. Not thread-safe.
class GroupExchange {
 public:
  /// Rank r of the group computes parts [first_parts[r], first_parts[r + 1]). For the current device, of
  /// which `stream` is one. `devices` and `stream` outlive this object.
  GroupExchange(DeviceGroup& devices, Stream& stream, std::vector<int> first_parts);

  /// Work that comes later on the stream has all parts, of `bytes` each.
  void all(std::byte* parts, std::size_t bytes);

  /// How long the stream has waited for exchanges since the last call, by the device's clock; 0 the first
  /// time. Waits for the device, so it comes after DeviceGroup::wait().
  double take_seconds() { return clock_.take(); }

 private:
  DeviceGroup& devices_;
  Stream& stream_;
  const std::vector<int> first_parts_;
  DeviceClock clock_;
  std::vector<std::size_t> begins_;  // of the ranks' parts, in bytes
};

}  // namespace sweep::cuda
