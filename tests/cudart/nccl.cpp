// libraries/nccl.h on the host, for tests: NCCL's contract, and what it does not promise happens never.
//
// A call with other sizes than the others' is an error that names the rank; on GPUs it is undefined. A rank
// that does not come, or has aborted, is noticed at the deadline only, as on GPUs, or if the caller's check
// throws. An exchange does the stream's work so far: the streams of the other ranks cannot be reached from
// here, so that it cannot be left for later. What it brings is written as late as the stream's other work.
// Ranks are threads or processes of this machine.
#include "core/kernels/cuda/libraries/nccl.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "core/base/file.h"
#include "core/kernels/cuda/runtime/cuda_devices.h"
#include "tests/cudart/state.h"

namespace sweep {

std::optional<std::string> nccl_missing_reason() { return std::nullopt; }

namespace cuda {
namespace {

constexpr std::size_t kMaxRanks = 16;

// What the ranks of a group share, at the beginning of a file in memory; what they exchange follows there.
// New memory is zero. Its only locks are atomic numbers: a process that is killed leaves none locked.
struct Shared {
  struct Rank {
    std::array<char, 64> device;
    std::array<std::size_t, kMaxRanks + 1> begins;
    std::atomic<std::uint64_t> arrivals;
  };
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

  std::atomic<std::uint64_t> left;  // ranks that have left
  std::array<Rank, kMaxRanks> ranks;
};

// Where the ranks of a group meet, which may be threads and processes: one rank's end. Every function throws
// CommunicatorError.
class Meeting {
 public:
  // `name`: what the ranks have in common, "/" and characters of a file's name. `device`: the same for no
  // other rank. Waits for all ranks; `deadline`: for each wait, in seconds. `check`: called while this rank
  // waits, and may throw.
  Meeting(const std::string& name, int rank, int size, const std::string& device, double deadline,
          std::function<void()> check)
      : rank_(rank),
        size_(size),
        deadline_(deadline),
        check_(std::move(check)),
        file_(::shm_open(name.c_str(), O_RDWR | O_CREAT, 0600)) {
    struct Unlink {  // once all have it
      const std::string& name;
      ~Unlink() { ::shm_unlink(name.c_str()); }
    } unlink{name};
    void* memory = MAP_FAILED;
    if (file_.get() >= 0 && ::ftruncate(file_.get(), sizeof(Shared)) == 0)
      memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
    if (memory == MAP_FAILED) fail_memory();
    shared_.reset(static_cast<Shared*>(memory));
    join(device);
  }

  // Each rank's bytes [begins[rank], begins[rank + 1]) of `data` to all. Throws on all ranks if `begins` are
  // not the same.
  void all_gather(std::byte* data, std::span<const std::size_t> begins) {
    std::copy(begins.begin(), begins.end(), rank(rank_).begins.begin());
    arrive();
    compare(begins);
    const auto pass = [&](const auto& call, std::size_t part) {
      const std::size_t begin = begins[part], bytes = begins[part + 1] - begin;
      const auto at = static_cast<off_t>(sizeof(Shared) + begin);
      if (call(file_.get(), data + begin, bytes, at) != static_cast<ssize_t>(bytes)) fail_memory();
    };
    const auto own = static_cast<std::size_t>(rank_);
    pass(::pwrite, own);
    arrive();
    for (std::size_t part = 0; part + 1 < begins.size(); ++part) {
      if (part != own) pass(::pread, part);
    }
    arrive();  // All have copied.
  }

  // Waits for all ranks to leave, as long as NCCL's caller does.
  void leave() noexcept {
    ++shared_->left;
    Deadline over(std::min(deadline_, 5.0));
    while (shared_->left < static_cast<std::uint64_t>(size_) && !over.is_over())
      std::this_thread::sleep_for(std::chrono::microseconds(50));
  }

 private:
  struct Unmap {
    void operator()(Shared* shared) const { ::munmap(shared, sizeof *shared); }
  };

  [[noreturn]] static void fail_memory() {
    throw CommunicatorError("NCCL: no shared memory: " + std::string(std::strerror(errno)));
  }

  Shared::Rank& rank(int number) const { return shared_->ranks[static_cast<std::size_t>(number)]; }

  // Throws on all ranks that have the device of another one.
  void join(const std::string& device) {
    const auto text_of = [this](int number) { return std::string(rank(number).device.data()); };
    device.copy(rank(rank_).device.data(), device.size());
    arrive();
    for (int other = 0; other < size_; ++other) {
      if (other != rank_ && text_of(other) == device)
        throw CommunicatorError("NCCL: ranks " + std::to_string(other) + " and " + std::to_string(rank_) +
                                " have the same device, " + device);
    }
  }

  // Waits until all ranks have arrived as often as this one.
  void arrive() {
    const std::uint64_t target = ++rank(rank_).arrivals;
    Deadline over(deadline_);
    int late = 0;
    for (int look = 0;; ++look) {
      while (late < size_ && rank(late).arrivals.load() >= target) ++late;
      if (late == size_) return;
      if (over.is_over())
        throw CommunicatorError("NCCL: rank " + std::to_string(late) + " has not come to call " +
                                std::to_string(target) + " of rank " + std::to_string(rank_));
      if (check_) check_();
      if (look < 100) {
        std::this_thread::yield();
      } else {
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
    }
  }

  void compare(std::span<const std::size_t> begins) const {
    const auto& first = rank(0).begins;
    for (int other = 1; other < size_; ++other) {
      const auto& others = rank(other).begins;
      if (std::equal(first.begin(), first.begin() + static_cast<std::ptrdiff_t>(begins.size()),
                     others.begin()))
        continue;
      throw CommunicatorError("NCCL: rank " + std::to_string(other) + " exchanges " +
                              std::to_string(others[begins.size() - 1]) +
                              " bytes, or shares them in another way than rank 0 does with " +
                              std::to_string(first[begins.size() - 1]));
    }
  }

  const int rank_, size_;
  const double deadline_;
  const std::function<void()> check_;
  const FileDescriptor file_;
  std::unique_ptr<Shared, Unmap> shared_;
};

constexpr std::size_t kIdBytes = 16;  // of an id, that are not 0

std::string name_of(const DeviceGroupId& id) {
  std::string name = "/sweep-devices-";
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
    if (rank < 0 || rank >= size || size > static_cast<int>(kMaxRanks))
      throw CommunicatorError("NCCL: rank " + std::to_string(rank) + " of " + std::to_string(size));
    const std::string device = list_cuda_devices().at(static_cast<std::size_t>(device_)).uuid;
    meeting_ = std::make_unique<Meeting>(name_of(id), rank, size, device, deadline, std::move(check));
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
  std::unique_ptr<Meeting> meeting_;  // nullptr once aborted
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
