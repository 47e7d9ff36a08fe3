// One rank's end of a group to which the others come late.
#pragma once

#include <chrono>
#include <thread>

#include "core/parallel/communicator.h"

namespace sweep::test {

/// Each call takes so long more. `group` must outlive it.
class DelayedCommunicator final : public Communicator {
 public:
  DelayedCommunicator(Communicator& group, std::chrono::milliseconds delay) : group_(group), delay_(delay) {}
  int rank() const override { return group_.rank(); }
  int size() const override { return group_.size(); }
  int local_rank() const override { return group_.local_rank(); }
  double deadline() const override { return group_.deadline(); }
  bool shares_memory() const override { return group_.shares_memory(); }
  void all_gather(std::span<const SharedArray> arrays) override { late().all_gather(arrays); }
  void scatter(const SharedArray& array) override { late().scatter(array); }
  void broadcast(std::span<std::byte> data) override { late().broadcast(data); }
  void barrier() override { late().barrier(); }
  void abort(const std::string& reason) noexcept override { group_.abort(reason); }

 private:
  Communicator& late() {
    std::this_thread::sleep_for(delay_);
    return group_;
  }

  Communicator& group_;
  const std::chrono::milliseconds delay_;
};

}  // namespace sweep::test
