// The exchange of parts between the devices of a group: at once, or part by part beside the computation.
#pragma once

#include <vector>

#include "core/kernels/cuda/libraries/nccl.h"
#include "core/kernels/cuda/part_exchange.h"
#include "core/kernels/cuda/runtime/device_clock.h"
#include "core/network/network.h"

namespace sweep::cuda {

/// Whether a part's gradient is worth an exchange of its own. Depends on the network alone: all devices have
/// to decide the same, whatever they measure.
bool gradient_is_worth_a_round(const Network& network);

/// `stream`, on which a device computes, never waits for another device, but in all() and finish(): begin()
/// exchanges on a stream beside it. DeviceGroup::wait(stream) may be called unless a begin() is not finished.
class GroupExchange final : public PartExchange {
 public:
  /// Rank r of the group computes parts [first_parts[r], first_parts[r + 1]). For the current device, of
  /// which `stream` is one. `devices` and `stream` outlive this object.
  GroupExchange(DeviceGroup& devices, Stream& stream, std::vector<int> first_parts);

  void all(std::byte* parts, std::size_t bytes) override;
  void begin(std::byte* parts, std::size_t bytes, int round) override;
  void finish() override;

  /// How long `stream` has waited for exchanges since the last call, by the device's clock; 0 the first time.
  /// Waits for the device, so it comes after DeviceGroup::wait().
  double take_seconds() { return clock_.take(); }

 private:
  DeviceGroup& devices_;
  Stream& stream_;
  const std::vector<int> first_parts_;
  Stream beside_;
  Event computed_, exchanged_;
  DeviceClock clock_;
  std::vector<std::size_t> begins_;         // of the ranks' parts, in bytes
  std::vector<DeviceGroup::Block> blocks_;  // of a round
};

}  // namespace sweep::cuda
