// Runs the threads of blocks in turns, on fibers that are kept from block to block.
#include <atomic>
#include <memory>
#include <stdexcept>
#include <vector>

#include "core/kernels/cuda/host/fiber.h"
#include "core/kernels/cuda/runtime/host_builtins.h"

namespace sweep::cuda::host {

constinit thread_local Index3 thread_index, block_index, block_size, grid_size;
constinit thread_local std::byte* block_memory = nullptr;

namespace {

std::atomic<Order> order{Order::kForward};
std::atomic<std::uint64_t> grids{0};

// The n-th of `count` places in the order that is asked for.
unsigned nth(unsigned n, unsigned count) { return order == Order::kForward ? n : count - 1 - n; }

class BlockRunner {
 public:
  void run(const std::function<void()>& thread) {
    thread_ = &thread;
    threads_ = block_size.x * block_size.y * block_size.z;
    started_ = ended_ = 0;
    waiting_.clear();
    while (started_ < threads_) resume(idle_fiber());
    while (!waiting_.empty()) {
      if (ended_ > 0) {
        idle_.clear();
        fibers_.clear();  // They stand in the middle of the kernel.
        throw std::logic_error("a kernel's threads end while others of their block wait at a barrier");
      }
      std::vector<Waiting> turn;
      turn.swap(waiting_);
      for (const Waiting& waiting : turn) {
        thread_index = waiting.index;
        resume(waiting.fiber);
      }
    }
  }

  void wait() {
    Fiber* fiber = running_;
    waiting_.push_back({fiber, thread_index});
    fiber->yield();
  }

 private:
  struct Waiting {
    Fiber* fiber;
    Index3 index;
  };

  void resume(Fiber* fiber) {
    running_ = fiber;
    fiber->resume();
  }

  Fiber* idle_fiber() {
    if (idle_.empty()) {
      fibers_.push_back(std::make_unique<Fiber>([this] { work(); }));
      return fibers_.back().get();
    }
    Fiber* fiber = idle_.back();
    idle_.pop_back();
    return fiber;
  }

  // A fiber's life: threads of blocks, one after the other, as long as there are any that have not started.
  void work() {
    Fiber* self = running_;
    for (;;) {
      while (started_ < threads_) {
        const unsigned t = nth(started_++, threads_);
        thread_index = {t % block_size.x, t / block_size.x % block_size.y, t / (block_size.x * block_size.y)};
        (*thread_)();
        ++ended_;
      }
      idle_.push_back(self);
      self->yield();
    }
  }

  const std::function<void()>* thread_ = nullptr;
  unsigned threads_ = 0, started_ = 0, ended_ = 0;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
  std::vector<Waiting> waiting_;
  Fiber* running_ = nullptr;
};

BlockRunner& runner() {
  thread_local BlockRunner instance;
  return instance;
}

}  // namespace

void run_grid(Index3 grid, Index3 block, std::size_t shared_bytes, const std::function<void()>& thread) {
  ++grids;
  // Of exactly this size, so that sanitizers see what goes beyond it, and full of NaNs.
  std::vector<std::byte> memory(shared_bytes, std::byte{0xFF});
  block_memory = memory.data();
  grid_size = grid;
  block_size = block;
  BlockRunner& blocks = runner();
  const unsigned count = grid.x * grid.y * grid.z;
  for (unsigned n = 0; n < count; ++n) {
    const unsigned b = nth(n, count);
    block_index = {b % grid.x, b / grid.x % grid.y, b / (grid.x * grid.y)};
    blocks.run(thread);
  }
}

void wait_for_block() { runner().wait(); }

void set_order(Order value) { order = value; }

std::uint64_t grids_run() { return grids; }

}  // namespace sweep::cuda::host
