#include "core/parallel/communicator.h"

#include <hwy/cache_control.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <shared_mutex>

#include "core/base/threads.h"
#include "core/engine/device.h"

namespace sweep {
namespace {

using namespace std::chrono_literals;

// What the ranks of a group share. A rank counts its arrivals; a call has two or three of them, and a rank
// goes on when all, or rank 0, have arrived as often as it has.
class ThreadGroup {
 public:
  ThreadGroup(int size, std::string name, double deadline)
      : name_(std::move(name)),
        deadline_(deadline),
        spin_(size <= available_cores() ? 200us : 0us),
        ranks_(static_cast<std::size_t>(size)) {}

  std::size_t size() const { return ranks_.size(); }
  double deadline() const { return deadline_; }
  /// What rank `rank` shows to the others from its next arrival on, until the one after it.
  std::span<const SharedArray>& shown(std::size_t rank) { return ranks_[rank].shown; }
  /// Held, shared, by ranks that copy what others show.
  std::shared_mutex& copying() { return copying_; }

  void arrive(std::size_t rank) {
    ranks_[rank].arrivals.fetch_add(1);
    if (sleepers_.load() == 0) return;
    { const std::lock_guard lock(mutex_); }  // waits for a sleeper between its look and its sleep
    changed_.notify_all();
  }

  /// Waits until ranks [0, end) have arrived as often as `rank`: for rank 0 alone as long as it takes.
  void wait(std::size_t rank, std::size_t end) {
    const std::uint64_t target = ranks_[rank].arrivals.load(std::memory_order_relaxed);
    const auto is_there = [&](std::size_t r) { return ranks_[r].arrivals.load() >= target; };
    std::size_t next = 0;  // the first that has not arrived
    const auto all_there = [&] {
      while (next < end && is_there(next)) ++next;
      return next == end || has_failed_.load();
    };
    const auto begin = std::chrono::steady_clock::now();
    while (!all_there() && std::chrono::steady_clock::now() - begin < spin_) hwy::Pause();
    if (!all_there()) sleep(all_there, next, end == 1);
    check();
  }

  bool has_failed() const { return has_failed_.load(); }
  void check() {
    if (!has_failed()) return;
    const std::lock_guard lock(mutex_);
    throw CommunicatorError(failure_);
  }

  void fail(std::size_t rank, const std::string& reason) noexcept {
    {
      const std::lock_guard lock(mutex_);
      set_failure(rank, reason);
    }
    changed_.notify_all();
  }

 private:
  struct alignas(64) Rank {
    std::atomic<std::uint64_t> arrivals{0};
    std::span<const SharedArray> shown;
  };

  template <class Predicate>
  void sleep(Predicate all_there, const std::size_t& next, bool for_ever) {
    Deadline deadline(deadline_);
    std::unique_lock lock(mutex_);
    sleepers_.fetch_add(1);
    while (!changed_.wait_for(lock, 200ms, all_there)) {
      if (for_ever || !deadline.is_over()) continue;
      set_failure(next, silence(deadline_));
      changed_.notify_all();
    }
    sleepers_.fetch_sub(1);
  }

  // With mutex_ held. The first failure is the reason of all others.
  void set_failure(std::size_t rank, const std::string& reason) {
    if (!failure_.empty()) return;
    failure_ = name_ + std::to_string(rank) + ": " + reason;
    has_failed_ = true;
  }

  const std::string name_;
  const double deadline_;
  const std::chrono::microseconds spin_;  // before a rank sleeps
  std::vector<Rank> ranks_;
  std::atomic<int> sleepers_{0};
  std::atomic<bool> has_failed_{false};
  std::string failure_;  // guarded by mutex_
  std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_mutex copying_;
};

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(std::shared_ptr<ThreadGroup> group, std::size_t rank)
      : group_(std::move(group)), rank_(rank) {}

  int rank() const override { return static_cast<int>(rank_); }
  int size() const override { return static_cast<int>(group_->size()); }
  int local_rank() const override { return rank(); }
  double deadline() const override { return group_->deadline(); }
  bool shares_memory() const override { return true; }

  void all_gather(std::span<const SharedArray> arrays) override {
    group_->shown(rank_) = arrays;
    meet();
    copy_shown([&] {
      for (std::size_t step = 1; step < group_->size(); ++step) {
        const std::size_t peer = (rank_ + step) % group_->size();
        for (std::size_t i = 0; i < arrays.size(); ++i)
          copy_part(group_->shown(peer)[i].data, arrays[i].data, arrays[i].begins, peer);
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

  void abort(const std::string& reason) noexcept override { group_->fail(rank_, reason); }
  void check() override { group_->check(); }

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
    const std::shared_lock lock(group_->copying());
    if (!group_->has_failed()) copy();
  }

  // Throws only when nobody copies what this rank shows, which is gone then.
  void meet() {
    group_->arrive(rank_);
    try {
      group_->wait(rank_, group_->size());
    } catch (const CommunicatorError&) {
      const std::unique_lock lock(group_->copying());
      throw;
    }
  }

  template <class Copy>
  void from_root(const SharedArray& array, Copy copy) {
    if (rank_ == 0) group_->shown(0) = {&array, 1};
    group_->arrive(rank_);
    if (rank_ > 0) {
      group_->wait(rank_, 1);
      copy_shown([&] { copy(group_->shown(0)[0].data); });
    }
    meet();
  }

  std::shared_ptr<ThreadGroup> group_;
  std::size_t rank_;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> make_thread_group(int size, const std::string& name,
                                                             double deadline) {
  const auto group = std::make_shared<ThreadGroup>(size, name, deadline);
  std::vector<std::unique_ptr<Communicator>> ends;
  for (std::size_t rank = 0; rank < group->size(); ++rank)
    ends.push_back(std::make_unique<ThreadCommunicator>(group, rank));
  return ends;
}

}  // namespace sweep
