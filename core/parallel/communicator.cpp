#include "core/parallel/communicator.h"

#include <hwy/cache_control.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <new>
#include <shared_mutex>

#include "core/base/threads.h"
#include "core/engine/device.h"

namespace sweep {
namespace {

using namespace std::chrono_literals;

// What the ranks of a group share. A rank counts its arrivals; a call has two or three of them, and a rank
// goes on when all, or rank 0, have arrived as often as it has.
struct ThreadGroup {
  struct alignas(64) Rank {
    std::atomic<std::uint64_t> arrivals{0};
    std::span<const SharedArray> shown;  // to the others, from the next arrival on, until the one after it
  };

  ThreadGroup(int size, std::string prefix, double seconds)
      : name(std::move(prefix)),
        deadline(seconds),
        spin(size <= available_cores() ? 200us : 0us),
        ranks(static_cast<std::size_t>(size)) {}

  const std::string name;
  const double deadline;
  const std::chrono::microseconds spin;  // before a rank sleeps
  std::vector<Rank> ranks;
  std::atomic<int> sleepers{0};
  std::atomic<bool> has_failed{false};
  std::string failure;  // guarded by mutex
  std::mutex mutex;
  std::condition_variable changed;
  std::shared_mutex copying;  // held, shared, by ranks that copy what others show
};

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(std::shared_ptr<ThreadGroup> group, std::size_t rank)
      : group_(std::move(group)), rank_(rank) {}

  int rank() const override { return static_cast<int>(rank_); }
  int size() const override { return static_cast<int>(group_->ranks.size()); }
  int local_rank() const override { return rank(); }
  double deadline() const override { return group_->deadline; }
  bool shares_memory() const override { return true; }

  void all_gather(std::span<const SharedArray> arrays) override {
    group_->ranks[rank_].shown = arrays;
    meet();
    copy_shown([&] {
      for (std::size_t step = 1; step < group_->ranks.size(); ++step) {
        const std::size_t peer = (rank_ + step) % group_->ranks.size();
        for (std::size_t i = 0; i < arrays.size(); ++i)
          copy_part(group_->ranks[peer].shown[i].data, arrays[i].data, arrays[i].begins, peer);
      }
    });
    meet();
  }

  void scatter(const SharedArray& array) override {
    from_root(array, [&](std::byte* source) { copy_part(source, array.data, array.begins, rank_); });
  }

  void broadcast(std::span<std::byte> data) override {
    from_root({data.data(), {}}, [&](const std::byte* source) {
      if (source != data.data()) std::memcpy(data.data(), source, data.size());
    });
  }

  void barrier() override { meet(); }

  void abort(const std::string& reason) noexcept override {
    {
      const std::lock_guard lock(group_->mutex);
      set_failure(rank_, reason);
    }
    group_->changed.notify_all();
  }

  void check() override {
    if (!group_->has_failed) return;
    const std::lock_guard lock(group_->mutex);
    throw CommunicatorError(group_->failure);
  }

 private:
  static void copy_part(const std::byte* from, std::byte* to, std::span<const std::size_t> begins,
                        std::size_t rank) {
    if (from == to || begins[rank] == begins[rank + 1]) return;
    std::memcpy(to + begins[rank], from + begins[rank], begins[rank + 1] - begins[rank]);
  }

  // Calls copy(), which reads what others show, unless a rank has failed: those may leave then. meet(), which
  // follows, throws only when nobody copies what this rank shows.
  template <class Copy>
  void copy_shown(Copy copy) {
    const std::shared_lock lock(group_->copying);
    if (!group_->has_failed) copy();
  }

  // Throws only when nobody copies what this rank shows, which is gone then.
  void meet() {
    arrive();
    try {
      wait(group_->ranks.size());
    } catch (const CommunicatorError&) {
      const std::unique_lock lock(group_->copying);
      throw;
    }
  }

  template <class Copy>
  void from_root(const SharedArray& array, Copy copy) {
    if (rank_ == 0) group_->ranks[0].shown = {&array, 1};
    arrive();
    if (rank_ > 0) {
      wait(1);
      copy_shown([&] { copy(group_->ranks[0].shown[0].data); });
    }
    meet();
  }

  void arrive() {
    group_->ranks[rank_].arrivals.fetch_add(1);
    if (group_->sleepers == 0) return;
    { const std::lock_guard lock(group_->mutex); }  // waits for a sleeper between its look and its sleep
    group_->changed.notify_all();
  }

  // Waits until ranks [0, end) have arrived as often as this one: for rank 0 alone as long as it takes.
  void wait(std::size_t end) {
    const std::uint64_t target = group_->ranks[rank_].arrivals.load(std::memory_order_relaxed);
    std::size_t next = 0;  // the first that has not arrived
    const auto all_there = [&] {
      while (next < end && group_->ranks[next].arrivals >= target) ++next;
      return next == end || group_->has_failed;
    };
    const auto begin = std::chrono::steady_clock::now();
    while (!all_there() && std::chrono::steady_clock::now() - begin < group_->spin) hwy::Pause();
    if (!all_there()) sleep(all_there, next, end == 1);
    check();
  }

  template <class Predicate>
  void sleep(Predicate all_there, const std::size_t& next, bool for_ever) {
    Deadline deadline(group_->deadline);
    std::unique_lock lock(group_->mutex);
    ++group_->sleepers;
    while (!group_->changed.wait_for(lock, 200ms, all_there)) {
      if (for_ever || !deadline.is_over()) continue;
      set_failure(next, silence(group_->deadline));
      group_->changed.notify_all();
    }
    --group_->sleepers;
  }

  // With the mutex held. The first failure is the reason of all others.
  void set_failure(std::size_t rank, const std::string& reason) {
    if (!group_->failure.empty()) return;
    group_->failure = group_->name + std::to_string(rank) + ": " + reason;
    group_->has_failed = true;
  }

  std::shared_ptr<ThreadGroup> group_;
  std::size_t rank_;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> make_thread_group(int size, const std::string& name,
                                                             double deadline) {
  const auto group = std::make_shared<ThreadGroup>(size, name, deadline);
  std::vector<std::unique_ptr<Communicator>> ends;
  for (std::size_t rank = 0; rank < group->ranks.size(); ++rank)
    ends.push_back(std::make_unique<ThreadCommunicator>(group, rank));
  return ends;
}

void on_all_ranks(Communicator& group, const std::function<void()>& work) {
  if (group.shares_memory()) {
    work();
    return group.barrier();
  }
  using Problem = std::array<char, 1024>;  // ends with '\0'; empty: none
  const auto size = static_cast<std::size_t>(group.size());
  std::vector<Problem> problems(size);
  try {
    work();
  } catch (const CommunicatorError&) {
    throw;
  } catch (const std::exception& error) {
    Problem& own = problems[static_cast<std::size_t>(group.rank())];
    const std::string reason = reason_of(error);
    reason.copy(own.data(), own.size() - 1);
    if (reason.empty()) own[0] = '?';
  }
  std::vector<std::size_t> begins;
  for (std::size_t rank = 0; rank <= size; ++rank) begins.push_back(rank * sizeof(Problem));
  const SharedArray array{bytes_of(std::span(problems)).data(), begins};
  group.all_gather({&array, 1});
  for (std::size_t rank = 0; rank < size; ++rank) {
    if (problems[rank][0] != '\0')
      throw ReplicaError("rank " + std::to_string(rank) + ": " + problems[rank].data());
  }
}

std::string reason_of(const std::exception& error) {
  return dynamic_cast<const std::bad_alloc*>(&error) != nullptr ? "out of memory" : error.what();
}

}  // namespace sweep
