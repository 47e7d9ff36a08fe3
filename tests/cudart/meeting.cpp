#include "tests/cudart/meeting.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <thread>

#include "core/parallel/communicator.h"

namespace sweep::cuda::cudart {
namespace {

constexpr std::size_t kMaxRanks = 16;
constexpr std::size_t kWindow = 1 << 20;  // bytes that are exchanged at once

}  // namespace

// New memory is zero. Its only locks are atomic numbers: a process that is killed leaves none behind.
struct Meeting::Shared {
  struct Rank {
    std::array<char, 64> device;  // empty until the rank joins
    std::array<std::size_t, kMaxRanks + 1> begins;
    std::atomic<std::uint64_t> arrivals;
  };
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

  std::atomic<std::uint64_t> left;  // ranks that have left
  int size;
  std::array<Rank, kMaxRanks> ranks;
  std::array<std::byte, kWindow> window;
};

struct Meeting::Mapping {
  explicit Mapping(const std::string& name) : file(::shm_open(name.c_str(), O_RDWR | O_CREAT, 0600)) {
    if (file < 0 || ::ftruncate(file, sizeof(Shared)) != 0)
      throw CommunicatorError("NCCL: " + name + ": no shared memory: " + std::strerror(errno));
    data = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (data == MAP_FAILED)
      throw CommunicatorError("NCCL: shared memory cannot be mapped: " + std::string(std::strerror(errno)));
  }
  ~Mapping() {
    ::munmap(data, sizeof(Shared));
    ::close(file);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  int file;
  void* data = nullptr;
};

Meeting::Meeting(const std::string& name, int rank, int size, const std::string& device, double deadline,
                 std::function<void()> check)
    : name_("/sweep-devices-" + name),
      rank_(rank),
      size_(size),
      deadline_(deadline),
      check_(std::move(check)),
      mapping_(std::make_unique<Mapping>(name_)),
      shared_(*static_cast<Shared*>(mapping_->data)) {
  struct Unlink {  // once all have it
    const std::string& name;
    ~Unlink() { ::shm_unlink(name.c_str()); }
  } unlink{name_};
  join(device);
  arrive();
}

Meeting::~Meeting() = default;

void Meeting::join(const std::string& device) {
  const std::string own = "NCCL: rank " + std::to_string(rank_);
  if (size_ > static_cast<int>(kMaxRanks))
    throw CommunicatorError(own + " of " + std::to_string(size_) + ": the stand-in has at most " +
                            std::to_string(kMaxRanks));
  struct Lock {  // ends with the process
    explicit Lock(int locked) : file(locked) { ::flock(file, LOCK_EX); }
    ~Lock() { ::flock(file, LOCK_UN); }
    int file;
  } lock(mapping_->file);
  if (shared_.size != 0 && shared_.size != size_)
    throw CommunicatorError(own + " joins a group of " + std::to_string(size_) + ", another rank one of " +
                            std::to_string(shared_.size));
  shared_.size = size_;
  for (int other = 0; other < size_; ++other) {
    const char* joined = shared_.ranks[static_cast<std::size_t>(other)].device.data();
    if (*joined == '\0') continue;
    if (other == rank_) throw CommunicatorError(own + " joins twice");
    if (joined == device)
      throw CommunicatorError("NCCL: ranks " + std::to_string(other) + " and " + std::to_string(rank_) +
                              " have the same device, " + device);
  }
  std::array<char, 64>& text = shared_.ranks[static_cast<std::size_t>(rank_)].device;
  device.copy(text.data(), text.size() - 1);
}

// Waits until all ranks have arrived as often as this one.
void Meeting::arrive() {
  const auto arrivals = [&](int rank) -> std::atomic<std::uint64_t>& {
    return shared_.ranks[static_cast<std::size_t>(rank)].arrivals;
  };
  const std::uint64_t target = ++arrivals(rank_);
  Deadline over(deadline_);
  int late = 0;
  for (int look = 0;; ++look) {
    while (late < size_ && arrivals(late).load() >= target) ++late;
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

void Meeting::compare(std::span<const std::size_t> begins) const {
  const auto count = static_cast<std::ptrdiff_t>(begins.size());
  const auto& first = shared_.ranks[0].begins;
  for (int rank = 1; rank < size_; ++rank) {
    const auto& others = shared_.ranks[static_cast<std::size_t>(rank)].begins;
    if (std::equal(first.begin(), first.begin() + count, others.begin())) continue;
    throw CommunicatorError("NCCL: rank " + std::to_string(rank) + " exchanges " +
                            std::to_string(others[begins.size() - 1]) +
                            " bytes, or shares them in another way than rank 0 does with " +
                            std::to_string(first[begins.size() - 1]));
  }
}

void Meeting::all_gather(std::byte* data, std::span<const std::size_t> begins) {
  const auto rank = static_cast<std::size_t>(rank_);
  std::copy(begins.begin(), begins.end(), shared_.ranks[rank].begins.begin());
  arrive();
  compare(begins);
  arrive();  // All have compared.
  // Calls `copy` with where a range lies in `data` and in the window.
  const auto for_part = [&](std::size_t window, std::size_t part, auto copy) {
    const std::size_t begin = std::max(window, begins[part]);
    const std::size_t end = std::min(window + kWindow, begins[part + 1]);
    if (begin < end) copy(data + begin, shared_.window.data() + (begin - window), end - begin);
  };
  for (std::size_t window = 0; window < begins.back(); window += kWindow) {
    for_part(window, rank,
             [](std::byte* own, std::byte* shown, std::size_t bytes) { std::memcpy(shown, own, bytes); });
    arrive();
    for (std::size_t part = 0; part + 1 < begins.size(); ++part) {
      if (part == rank) continue;
      for_part(window, part, [](std::byte* own, const std::byte* shown, std::size_t bytes) {
        std::memcpy(own, shown, bytes);
      });
    }
    arrive();  // All have copied.
  }
}

void Meeting::leave() noexcept {
  ++shared_.left;
  Deadline over(std::min(deadline_, 5.0));
  while (shared_.left < static_cast<std::uint64_t>(size_) && !over.is_over())
    std::this_thread::sleep_for(std::chrono::microseconds(50));
}

}  // namespace sweep::cuda::cudart
