// Signs of life of rank 0 in a group of MPI, and how the group ends when a rank is lost. Not part of the
// installed interface.
#pragma once

#include <mpi.h>

#include <condition_variable>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace sweep {

/// Says that `rank` is lost, and why, and ends all processes. May be called by any thread.
[[noreturn]] inline void end_all_ranks(MPI_Comm comm, int rank, const std::string& reason) noexcept {
  std::cerr << "sweep: rank " + std::to_string(rank) + ": " + reason +
                   "; all ranks end, and the same command resumes the sweep\n"
            << std::flush;
  MPI_Abort(comm, 1);
  std::_Exit(1);
}

/// Between two commands rank 0 may take any time to load data or to train other runs alone, or it may wait
/// for one rank while others wait for it. One of its threads tells the others that it lives: if they hear
/// nothing, it was killed, or its machine is lost. A sign is sent to a rank only after it has taken the
/// previous one, so none pile up if a process is stopped.
class MpiPulse {
 public:
  /// On all ranks together. `deadline`: of the group, in seconds; there are ten signs in it. Every caller of
  /// MPI on this rank holds `mpi`. Throws Error if there is no thread left.
  MpiPulse(MPI_Comm world, double deadline, std::mutex& mpi);
  /// On all ranks together, which have come to the end when it returns. A rank that is late ends them all.
  ~MpiPulse();
  MpiPulse(const MpiPulse&) = delete;
  MpiPulse& operator=(const MpiPulse&) = delete;

  /// Whether rank 0 has given a sign since the last call; false on rank 0. With `mpi` held, and while rank 0
  /// has a command to give.
  bool was_felt();

 private:
  enum Sign : char { kThere, kEnd, kAllAtEnd };

  void beat();
  void give(std::size_t i);
  void listen();
  void wait(double seconds);

  const double deadline_;
  std::mutex& mpi_;
  MPI_Comm comm_{};
  int rank_ = 0;
  Sign sign_ = kThere;
  std::vector<MPI_Request> requests_;  // rank 0: a sign to each of the others; else: the next sign
  std::mutex mutex_;
  std::condition_variable ended_;
  bool ends_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace sweep
