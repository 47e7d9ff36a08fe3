// One rank's end of a group, passed through: what a test changes of it, a class derived from this overrides.
#pragma once

#include "core/parallel/communicator.h"
#include "tests/support/test.h"

namespace sweep::test {

/// `group` must outlive it.
class ForwardingCommunicator : public Communicator {
 public:
  explicit ForwardingCommunicator(Communicator& group) : group_(group) {}
  int rank() const override { return group_.rank(); }
  int size() const override { return group_.size(); }
  int local_rank() const override { return group_.local_rank(); }
  double deadline() const override { return group_.deadline(); }
  bool shares_memory() const override { return group_.shares_memory(); }
  void all_gather(std::span<const SharedArray> arrays) override {
    before_call();
    group_.all_gather(arrays);
  }
  void scatter(const SharedArray& array) override {
    before_call();
    group_.scatter(array);
  }
  void broadcast(std::span<std::byte> data) override {
    before_call();
    group_.broadcast(data);
  }
  void barrier() override {
    before_call();
    group_.barrier();
  }
  void abort(const std::string& reason) noexcept override { group_.abort(reason); }
  void abort_for_lost_rank(const std::string& reason) noexcept override {
    group_.abort_for_lost_rank(reason);
  }
  void check() override { group_.check(); }

 private:
  virtual void before_call() {}

  Communicator& group_;
};

/// To which the others come late: each call takes so long more.
class DelayedCommunicator final : public ForwardingCommunicator {
 public:
  DelayedCommunicator(Communicator& group, std::chrono::milliseconds delay)
      : ForwardingCommunicator(group), delay_(delay) {}

 private:
  void before_call() override { std::this_thread::sleep_for(delay_); }

  const std::chrono::milliseconds delay_;
};

}  // namespace sweep::test
