// NCCL: what devices that train one network together exchange, on their streams. Opened at run time so that
// the program starts without it. nccl.cpp has the library, nccl_none.cpp replaces it in builds without its
// header, and tests/cudart/nccl.cpp in tests.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include "core/kernels/cuda/runtime/runtime.h"
#include "core/parallel/communicator.h"

namespace sweep::cuda {

/// What the ranks of a group have in common: made by one of them, and passed to the others.
using DeviceGroupId = std::array<std::byte, 128>;

/// One device's end of a group of devices, each with a thread of its own. All ranks call the same functions
/// in the same order. Every function throws CommunicatorError if NCCL reports an error, or if the others miss
/// the deadline; the group cannot be used again then. Not thread-safe; for the exception see abort().
class DeviceGroup {
 public:
  DeviceGroup() = default;
  /// Leaves the group together with the other ranks. Aborts if work is not done, which wait() tells, or if
  /// they do not come within seconds.
  virtual ~DeviceGroup() = default;
  DeviceGroup(const DeviceGroup&) = delete;
  DeviceGroup& operator=(const DeviceGroup&) = delete;

  /// Puts an exchange on `stream`: each device has the array in its memory, rank r has filled bytes
  /// [begins[r], begins[r + 1]), and each gets the others' parts. The size + 1 `begins` are the same on all
  /// ranks and do not decrease. Not during a capture.
  virtual void all_gather(Stream& stream, std::byte* data, std::span<const std::size_t> begins) = 0;

  /// Returns when the work on `stream` is done. An exchange is done only when all ranks take part, so
  /// Stream::wait() could wait forever: this one gives up, and aborts, at the deadline or if NCCL has found
  /// an error. `stream` is the one of all exchanges, or has begun to wait for those on other streams.
  virtual void wait(Stream& stream) = 0;
  /// The same for the work before `event`, which may come after exchanges.
  virtual void wait(const Event& event) = 0;

  /// Ends exchanges on the device that wait for others. Nothing can be exchanged afterwards. By the rank's
  /// own thread; the other ranks notice at their deadline, unless their `check` tells them.
  virtual void abort() noexcept = 0;
};

DeviceGroupId make_group_id();

/// Joins the group with the current device, which is that of no other rank. Waits for all ranks. `deadline`:
/// in seconds, > 0. `check`: called again and again while this rank waits for others, because NCCL does not
/// tell whether they are still there; the group is aborted if it throws. Throws as DeviceGroup's functions.
std::unique_ptr<DeviceGroup> make_device_group(const DeviceGroupId& id, int rank, int size,
                                               double deadline = kCommunicatorDeadline,
                                               std::function<void()> check = {});

}  // namespace sweep::cuda
