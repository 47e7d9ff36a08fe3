#include "core/parallel/mpi_pulse.h"

#include <chrono>

#include "core/base/threads.h"
#include "core/parallel/deadline.h"

namespace sweep {

MpiPulse::MpiPulse(MPI_Comm world, double deadline, std::mutex& mpi) : deadline_(deadline), mpi_(mpi) {
  MPI_Comm_dup(world, &comm_);
  int size = 1;
  MPI_Comm_rank(comm_, &rank_);
  MPI_Comm_size(comm_, &size);
  requests_.assign(static_cast<std::size_t>(rank_ == 0 ? size - 1 : 1), MPI_REQUEST_NULL);
  if (rank_ > 0) {
    listen();
  } else {
    const BlockSignals blocked;
    thread_ = start_thread("tells the other ranks that this one is there", [this] { beat(); });
  }
}

MpiPulse::~MpiPulse() {
  if (rank_ == 0) {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    ended_.notify_all();
    thread_.join();
    for (const Sign sign : {kEnd, kAllAtEnd}) {
      wait(deadline_);
      sign_ = sign;
      for (std::size_t i = 0; i < requests_.size(); ++i) give(i);
    }
    wait(deadline_);
  } else {
    // Rank 0 may have to wait for another.
    for (wait(2 * deadline_); sign_ != kAllAtEnd; wait(2 * deadline_)) listen();
  }
  MPI_Comm_free(&comm_);
}

bool MpiPulse::was_felt() {
  if (rank_ == 0) return false;
  int done = 0;
  MPI_Test(requests_.data(), &done, MPI_STATUS_IGNORE);
  if (done != 0) listen();
  return done != 0;
}

void MpiPulse::beat() {
  const std::chrono::duration<double> interval(deadline_ / 10);
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, interval, [this] { return ends_; })) {
    const std::lock_guard calls(mpi_);
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      int done = 0;
      MPI_Test(&requests_[i], &done, MPI_STATUS_IGNORE);
      if (done != 0) give(i);
    }
  }
}

// MPI_Issend is done when the sign is taken.
void MpiPulse::give(std::size_t i) {
  MPI_Issend(&sign_, 1, MPI_CHAR, static_cast<int>(i) + 1, 0, comm_, &requests_[i]);
}

void MpiPulse::listen() { MPI_Irecv(&sign_, 1, MPI_CHAR, 0, 0, comm_, requests_.data()); }

// At the end, when this thread alone calls MPI.
void MpiPulse::wait(double seconds) {
  Deadline deadline(seconds);
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    for (int done = 0; MPI_Test(&requests_[i], &done, MPI_STATUS_IGNORE), done == 0;) {
      if (deadline.is_over())
        end_all_ranks(comm_, rank_ == 0 ? static_cast<int>(i) + 1 : 0, silence(seconds));
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }
}

}  // namespace sweep
