// libraries/nccl.h on the host, for tests: NCCL's contract, and what it does not promise happens never.
//
// A call with other sizes than the others' is an error that names the rank; on GPUs it is undefined. A rank
// that does not come, or has aborted, is noticed at the deadline only, as on GPUs, or if the caller's check
// throws. An exchange does the stream's work so far: the streams of the other ranks cannot be reached from
// here, so that it cannot be left for later. What it brings is written as late as the stream's other work.
// Ranks are threads or processes of this machine.
#include "core/kernels/cuda/libraries/nccl.h"

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/kernels/cuda/runtime/cuda_devices.h"
#include "tests/cudart/meeting.h"
#include "tests/cudart/state.h"

namespace sweep {

std::optional<std::string> nccl_missing_reason() { return std::nullopt; }

namespace cuda {
namespace {

constexpr std::size_t kIdBytes = 16;  // of an id, that are not 0

std::string name_of(const DeviceGroupId& id) {
  std::string name;
  for (std::size_t i = 0; i < kIdBytes; ++i) {
    const auto value = std::to_integer<unsigned>(id[i]);
    name += {"0123456789abcdef"[value / 16], "0123456789abcdef"[value % 16]};
  }
  return name;
}

class StandInGroup final : public DeviceGroup {
 public:
  StandInGroup(const DeviceGroupId& id, int rank, int size, double deadline, std::function<void()> check)
      : rank_(rank), size_(size) {
    if (size < 1 || rank < 0 || rank >= size)
      throw CommunicatorError("NCCL: rank " + std::to_string(rank) + " of " + std::to_string(size));
    const std::string device = list_cuda_devices().at(static_cast<std::size_t>(device_)).uuid;
    meeting_ = std::make_unique<cudart::Meeting>(name_of(id), rank, size, device, deadline, std::move(check));
  }

  ~StandInGroup() override {
    if (meeting_ != nullptr) meeting_->leave();
  }

  void all_gather(Stream& stream, std::byte* data, std::span<const std::size_t> begins) override {
    require_usable();
    if (begins.size() != static_cast<std::size_t>(size_) + 1)
      throw CommunicatorError("NCCL: parts of " + std::to_string(begins.size() - 1) + " ranks for " +
                              std::to_string(size_));
    stream.wait();  // refuses captures
    const auto brought = std::make_shared<std::vector<std::byte>>(data, data + begins.back());
    const cudart::Exchanging others_may_wait;
    try {
      meeting_->all_gather(brought->data(), begins);
    } catch (...) {
      abort();
      throw;
    }
    for (std::size_t rank = 0; rank + 1 < begins.size(); ++rank) {
      if (rank == static_cast<std::size_t>(rank_)) continue;
      const std::scoped_lock lock(cudart::state().mutex);
      const auto write = [=, begin = begins[rank], end = begins[rank + 1]] {
        std::copy(brought->data() + begin, brought->data() + end, data + begin);
      };
      cudart::add_work(stream.native(), {.run = write, .is_exchange = true});
    }
  }

  void wait(Stream& stream) override {
    require_usable();
    stream.wait();
  }

  void wait(const Event& event) override {
    require_usable();
    event.wait();
  }

  void abort() noexcept override { meeting_ = nullptr; }

 private:
  void require_usable() const {
    if (meeting_ == nullptr)
      throw CommunicatorError("NCCL: rank " + std::to_string(rank_) + " has aborted its group");
    if (cudart::current_device() != device_)
      throw CommunicatorError("NCCL: rank " + std::to_string(rank_) + " is on device " +
                              std::to_string(device_) + ", but the thread's current device is " +
                              std::to_string(cudart::current_device()));
  }

  const int rank_, size_, device_ = cudart::current_device();
  std::unique_ptr<cudart::Meeting> meeting_;  // nullptr once aborted
};

}  // namespace

DeviceGroupId make_group_id() {
  // As NCCL's, it is that of no other group of the machine.
  std::random_device random;
  DeviceGroupId id{};
  std::generate_n(id.begin(), kIdBytes, [&] { return static_cast<std::byte>(random()); });
  return id;
}

std::unique_ptr<DeviceGroup> make_device_group(const DeviceGroupId& id, int rank, int size, double deadline,
                                               std::function<void()> check) {
  return std::make_unique<StandInGroup>(id, rank, size, deadline, std::move(check));
}

}  // namespace cuda
}  // namespace sweep
