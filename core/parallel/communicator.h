// How the devices that train one network together exchange what they have computed.
//
// A group has `size` ranks, from 0. All ranks call the same functions in the same order; a call returns when
// this rank has what it is to get and its own memory may be changed again. Nothing is ever added on the way:
// who needs a sum gathers its terms and adds them in an order of its own, so that bits do not depend on how
// many ranks there are, nor on how they are connected.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "core/base/error.h"

namespace sweep {

/// A rank that is dead, silent, or has failed. Names the rank.
class CommunicatorError : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

/// An array of which every rank has a part: rank r has bytes [begins[r], begins[r + 1]) of `data`. The
/// `begins`, size + 1 of them, are the same on all ranks and do not decrease.
struct SharedArray {
  std::byte* data = nullptr;
  std::span<const std::size_t> begins;
};

/// One rank's end of a group. Not thread-safe: one thread of the rank calls it, but for abort(). Every
/// function throws CommunicatorError, with the number of the rank, if another rank is later than the
/// deadline, or has called abort(); all ranks fail then, and the group is of no more use. Rank 0 is waited
/// for as long as it is there: what it gives to all it gives in its own time, such as the next batch.
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
  /// As abort(), where this rank has missed others in an exchange that goes past the group, as between
  /// devices, so that it does not know which of them is lost, if one is. With processes, who calls this or
  /// waits in the group is there; a rank that is not by twice the deadline is named instead of this one. By
  /// the thread that calls the other functions.
  virtual void abort_for_lost_rank(const std::string& reason) noexcept { abort(reason); }
};

}  // namespace sweep
