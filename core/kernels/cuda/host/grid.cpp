// Runs kernels on the host: blocks one after the other, the threads of a block as fibers that take turns.
#include <atomic>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "core/kernels/cuda/host/fiber.h"
#include "core/kernels/cuda/runtime/host_builtins.h"

namespace sweep::cuda::host {

constinit thread_local Index3 thread_index, block_index, block_size, grid_size;
constinit thread_local std::byte* block_memory = nullptr;

namespace {

std::atomic<Order> order{Order::kForward};
std::atomic<std::uint64_t> grids{0}, overlapped{0};
thread_local Index3 last;

// The n-th of `count` threads or blocks to run.
unsigned nth(unsigned n, unsigned count) { return order == Order::kForward ? n : count - 1 - n; }

// Runs blocks. A block starts with one fiber, which runs one thread after the other until a thread reaches a
// barrier. That fiber then waits, and another one goes on with the remaining threads. So a kernel without
// barriers needs one fiber, and one with barriers as many as threads. When every thread waits or has ended,
// all waiting fibers go on, in the order in which they came to the barrier. Fibers, and their stacks, are
// reused from block to block.
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
        // The waiting fibers are in the middle of the kernel and cannot be used again.
        idle_.clear();
        fibers_.clear();
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
      fibers_.push_back(std::make_unique<Fiber>([this] { run_threads(); }));
      return fibers_.back().get();
    }
    Fiber* fiber = idle_.back();
    idle_.pop_back();
    return fiber;
  }

  // The body of a fiber: runs threads that have not started yet, of one block after the other.
  void run_threads() {
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

// A kernel may run inside another one's wait_for_previous_kernel(), so there are runners for two levels.
constexpr int kLevels = 2;
thread_local int level = -1;
thread_local const std::function<void()>* pending_kernel = nullptr;

BlockRunner& runner() {
  thread_local BlockRunner instances[kLevels];
  return instances[level];
}

// Gives a kernel the built-in variables, and the one around it its own back.
class Frame {
 public:
  Frame() {
    if (++level == kLevels) throw std::logic_error("kernels overlap more than two deep");
  }
  ~Frame() {
    --level;
    thread_index = thread_;
    block_index = block_;
    block_size = size_;
    grid_size = grid_;
    block_memory = memory_;
  }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

 private:
  const Index3 thread_ = thread_index, block_ = block_index, size_ = block_size, grid_ = grid_size;
  std::byte* const memory_ = block_memory;
};

}  // namespace

void run_grid(Index3 grid, Index3 block, std::size_t shared_bytes, const std::function<void()>& thread) {
  const Frame frame;
  ++grids;
  last = grid;
  // Of exactly this size, so that sanitizers see an access beyond it, and filled with NaNs, so that a kernel
  // that relies on zeros fails.
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

void run_overlapped(const std::function<void()>& previous, const std::function<void()>& kernel) {
  pending_kernel = &previous;
  kernel();
  if (std::exchange(pending_kernel, nullptr) != nullptr)
    throw std::logic_error("a kernel that may overlap the previous one does not wait for it");
  ++overlapped;
}

void wait_for_previous_kernel() {
  if (const auto* previous = std::exchange(pending_kernel, nullptr)) (*previous)();
}

void set_order(Order value) { order = value; }

std::uint64_t grids_run() { return grids; }
std::uint64_t grids_overlapped() { return overlapped; }
Index3 last_grid() { return last; }

}  // namespace sweep::cuda::host
