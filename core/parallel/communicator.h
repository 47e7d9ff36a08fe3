// How the devices that train one network together exchange what they have computed.
//
// A group has `size` ranks, from 0. All ranks call the same functions in the same order; a call returns when
// this rank has what it is to get and its own memory may be changed again. Nothing is ever added on the way:
// a rank that needs a sum gathers its terms and adds them in its own order, so that bits depend neither on
// the number of ranks nor on how they are connected.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/error.h"

namespace sweep {

/// Counts the time that its owner has waited. At most one second counts between two looks: a process that was
/// stopped, or a machine that was suspended, has not waited. Look several times a second. Not thread-safe.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;

  explicit Deadline(double seconds, Clock::time_point now = Clock::now()) : left_(seconds), last_(now) {}

  /// Whether the time is over, counted until `now`.
  bool is_over(Clock::time_point now = Clock::now()) {
    left_ -= std::min(Seconds(now - last_), Seconds(1));
    last_ = now;
    return left_ <= Seconds(0);
  }

 private:
  Seconds left_;
  Clock::time_point last_;
};

/// For exchanges that take less than a second: a rank that is this late is taken for lost.
inline constexpr double kCommunicatorDeadline = 120;

/// Why it is: the reason in messages.
inline std::string silence(double deadline) {
  return "has not answered for " + std::to_string(std::lround(deadline)) + " s";
}

/// A rank that is dead, silent, or has failed. Names the rank.
class CommunicatorError : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

/// An array that the ranks share: rank r has bytes [begins[r], begins[r + 1]) of `data`. The size + 1
/// `begins` are the same on all ranks and do not decrease.
struct SharedArray {
  std::byte* data = nullptr;
  std::span<const std::size_t> begins;
};

/// The bytes of `values`, which a Communicator passes on.
template <class T>
std::span<std::byte> bytes_of(std::span<T> values) {
  return std::as_writable_bytes(values);
}
template <class T>
std::span<std::byte> bytes_of_value(T& value) {
  return bytes_of(std::span<T>(&value, 1));
}

/// One rank's end of a group. Not thread-safe: one thread of the rank calls everything except abort(). Every
/// function throws CommunicatorError, with the number of the rank, if another rank misses the deadline or has
/// called abort(). All ranks fail then, and the group cannot be used again. The deadline does not apply to
/// rank 0 as long as it lives: it may take its time, for example for the next batch.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Among the ranks of the same machine, from 0, in their order.
  virtual int local_rank() const = 0;
  /// How long a rank is waited for, in seconds.
  virtual double deadline() const = 0;
  /// Whether all ranks are threads of one process, so that a pointer means the same to all.
  virtual bool shares_memory() const = 0;

  /// Each rank gives its part of every array, and gets all the others'. Arrays whose data is at the same
  /// address on several ranks are one array there, and are not copied.
  virtual void all_gather(std::span<const SharedArray> arrays) = 0;
  /// Rank 0's array, whole, to the parts of the others: each gets its own part of it, at its place.
  virtual void scatter(const SharedArray& array) = 0;
  /// Rank 0's bytes to all.
  virtual void broadcast(std::span<std::byte> data) = 0;
  /// Returns when all ranks have called it.
  virtual void barrier() = 0;
  /// Lets the calls of all other ranks, now and later, fail with this rank's number and `reason`. May be
  /// called by any thread. With processes it may end them all, and not return.
  virtual void abort(const std::string& reason) noexcept = 0;
  /// Like abort(), if this rank has waited in vain in an exchange outside the group, for example between
  /// devices, and does not know which rank is lost, if one is. With processes, every rank that calls this or
  /// waits in the group is alive; a rank that does neither within twice the deadline is named instead of this
  /// one. Called by the thread that calls the other functions.
  virtual void abort_for_lost_rank(const std::string& reason) noexcept { abort(reason); }
  /// Throws CommunicatorError if a rank has called abort() and that is known here; does not wait. For a rank
  /// that waits outside the group. With processes it does nothing: abort() ends them.
  virtual void check() {}
};

/// The ends of a group of `size` >= 1 ranks that are threads of one process, in their order, each for one
/// thread. `deadline`: in seconds, > 0, or infinite. `name`: what the ranks are called in messages, before
/// their number: "cpu:" or "rank ".
std::vector<std::unique_ptr<Communicator>> make_thread_group(int size, const std::string& name = "rank ",
                                                             double deadline = kCommunicatorDeadline);

/// A rank cannot do its part of something, and all ranks have this error. The group can still be used, unless
/// its ranks are threads.
class ReplicaError : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

/// Calls `work` on every rank, each of which calls this, and returns when all have done it. `work` does not
/// use `group`. If ranks are processes and it throws on one of them, all throw ReplicaError with the number
/// of the rank. If they are threads, its error is thrown as it is, for the caller to tell the others.
void on_all_ranks(Communicator& group, const std::function<void()>& work);

/// What the other ranks are told of an error.
std::string reason_of(const std::exception& error);

}  // namespace sweep
