// libraries/nccl.h on the host, for tests: NCCL's contract, and what it does not promise happens never.
//
// A call with other sizes than the others' is an error that names the rank; on GPUs it is undefined. A rank
// that does not come, or has aborted, is noticed at the deadline only, as on GPUs. An exchange does the
// stream's work so far: the streams of the other ranks cannot be reached from here, so that it cannot be left
// for later. What it brings is written as late as the stream's other work.
#include "core/kernels/cuda/libraries/nccl.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "core/kernels/cuda/host/current_device.h"
#include "core/kernels/cuda/runtime/cuda_devices.h"

namespace sweep {

std::optional<std::string> nccl_missing_reason() { return std::nullopt; }

namespace cuda {
namespace {

// What the ranks of a group share.
class Meeting {
 public:
  struct Call {
    std::vector<DeviceGroup::Block> blocks;
    std::byte* data = nullptr;
    std::size_t bytes() const {
      std::size_t sum = 0;
      for (const DeviceGroup::Block& block : blocks) sum += block.bytes;
      return sum;
    }
  };

  explicit Meeting(int size) : ranks_(static_cast<std::size_t>(size)) {}

  void join(int rank, int size, int device, double deadline) {
    const std::lock_guard lock(mutex_);
    if (size != static_cast<int>(ranks_.size()))
      throw CommunicatorError("NCCL: rank " + std::to_string(rank) + " joins a group of " +
                              std::to_string(size) + ", another rank one of " +
                              std::to_string(ranks_.size()));
    for (std::size_t other = 0; other < ranks_.size(); ++other) {
      if (!ranks_[other].device) continue;
      if (static_cast<int>(other) == rank)
        throw CommunicatorError("NCCL: rank " + std::to_string(rank) + " joins twice");
      if (*ranks_[other].device == device)
        throw CommunicatorError("NCCL: ranks " + std::to_string(other) + " and " + std::to_string(rank) +
                                " have the same device, " + std::to_string(device));
    }
    Rank& own = at(rank);
    own.device = device;
    own.deadline = deadline;
  }

  /// Waits until all ranks have arrived as often as this one.
  void arrive(int rank) {
    std::unique_lock lock(mutex_);
    const std::uint64_t target = ++at(rank).arrivals;
    changed_.notify_all();
    std::size_t late = 0;
    const auto all_there = [&] {
      for (late = 0; late < ranks_.size(); ++late) {
        if (ranks_[late].arrivals < target) return false;
      }
      return true;
    };
    const std::chrono::duration<double> deadline(at(rank).deadline);
    if (!changed_.wait_for(lock, deadline, all_there))
      throw CommunicatorError("NCCL: rank " + std::to_string(late) + " has not come to call " +
                              std::to_string(target) + " of rank " + std::to_string(rank));
  }

  /// Waits for all ranks to leave, as long as NCCL's caller does.
  void leave(int rank) noexcept {
    std::unique_lock lock(mutex_);
    ++left_;
    changed_.notify_all();
    const std::chrono::duration<double> patience(std::min(at(rank).deadline, 5.0));
    changed_.wait_for(lock, patience, [this] { return left_ == ranks_.size(); });
  }

  void show(int rank, Call call) {
    const std::lock_guard lock(mutex_);
    at(rank).call = std::move(call);
  }

  /// Of all ranks, after they have arrived. Throws if they are not the same.
  std::vector<Call> calls() {
    const std::lock_guard lock(mutex_);
    std::vector<Call> calls;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      calls.push_back(ranks_[rank].call);
      if (calls.back().blocks != calls.front().blocks)
        throw CommunicatorError("NCCL: rank " + std::to_string(rank) + " exchanges " +
                                std::to_string(calls.back().bytes()) +
                                " bytes, or shares them in another way than rank 0 does with " +
                                std::to_string(calls.front().bytes()));
    }
    return calls;
  }

 private:
  struct Rank {
    std::optional<int> device;
    double deadline = 0;
    std::uint64_t arrivals = 0;
    Call call;
  };
  Rank& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Rank> ranks_;
  std::size_t left_ = 0;  // ranks that have left
};

// The groups of the process by their id, as long as they have ranks.
class Meetings {
 public:
  std::shared_ptr<Meeting> find(const DeviceGroupId& id, int size) {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<Meeting> meeting = meetings_[id].lock();
    if (meeting == nullptr) {
      meeting = std::make_shared<Meeting>(size);
      meetings_[id] = meeting;
    }
    return meeting;
  }

 private:
  std::mutex mutex_;
  std::map<DeviceGroupId, std::weak_ptr<Meeting>> meetings_;
};

Meetings& meetings() {
  static Meetings all;
  return all;
}

}  // namespace

struct DeviceGroup::Implementation {
  std::shared_ptr<Meeting> meeting;  // nullptr once aborted
  int rank = 0, size = 0, device = 0;

  void require_usable() const {
    if (meeting == nullptr)
      throw CommunicatorError("NCCL: rank " + std::to_string(rank) + " has aborted its group");
    if (host::current_device() != device)
      throw CommunicatorError("NCCL: rank " + std::to_string(rank) + " is on device " +
                              std::to_string(device) + ", but the thread's current device is " +
                              std::to_string(host::current_device()));
  }
};

DeviceGroupId DeviceGroup::make_id() {
  static std::atomic<std::uint64_t> made{0};
  const std::uint64_t number = ++made;
  DeviceGroupId id{};
  std::memcpy(id.data(), &number, sizeof number);
  return id;
}

DeviceGroup::DeviceGroup(const DeviceGroupId& id, int rank, int size, double deadline)
    : implementation_(std::make_unique<Implementation>()) {
  if (size < 1 || rank < 0 || rank >= size)
    throw CommunicatorError("NCCL: rank " + std::to_string(rank) + " of " + std::to_string(size));
  Implementation& own = *implementation_;
  own.meeting = meetings().find(id, size);
  own.rank = rank;
  own.size = size;
  own.device = host::current_device();
  own.meeting->join(rank, size, own.device, deadline);
  own.meeting->arrive(rank);
}

DeviceGroup::~DeviceGroup() {
  const Implementation& own = *implementation_;
  if (own.meeting != nullptr) own.meeting->leave(own.rank);
}

void DeviceGroup::all_gather(Stream& stream, std::byte* data, std::span<const std::size_t> begins) {
  std::vector<Block> blocks;
  for (std::size_t rank = 0; rank + 1 < begins.size(); ++rank)
    blocks.push_back({begins[rank], begins[rank + 1] - begins[rank]});
  all_gather_blocks(stream, data, blocks);
}

void DeviceGroup::all_gather_blocks(Stream& stream, std::byte* data, std::span<const Block> blocks) {
  Implementation& own = *implementation_;
  own.require_usable();
  if (blocks.size() != static_cast<std::size_t>(own.size))
    throw CommunicatorError("NCCL: parts of " + std::to_string(blocks.size()) + " ranks for " +
                            std::to_string(own.size));
  stream.wait();  // refuses captures
  own.meeting->show(own.rank, {{blocks.begin(), blocks.end()}, data});
  own.meeting->arrive(own.rank);
  const std::vector<Meeting::Call> calls = own.meeting->calls();
  for (std::size_t rank = 0; rank < calls.size(); ++rank) {
    const auto [begin, bytes] = blocks[rank];
    if (static_cast<int>(rank) == own.rank || bytes == 0) continue;
    const std::byte* first = calls[rank].data + begin;
    stream.enqueue([to = data + begin, brought = std::vector<std::byte>(first, first + bytes)] {
      std::ranges::copy(brought, to);
    });
  }
  own.meeting->arrive(own.rank);  // The others have copied, too.
}

void DeviceGroup::wait(Stream& stream) {
  implementation_->require_usable();
  stream.wait();
}

void DeviceGroup::abort() noexcept { implementation_->meeting = nullptr; }

}  // namespace cuda
}  // namespace sweep
