// Runs kernels on the host: blocks one after the other, the threads of a block as fibers that take turns.
#include <atomic>
#include <cstring>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "core/kernels/cuda/host/fiber.h"
#include "core/kernels/cuda/host/grid_observer.h"
#include "core/kernels/cuda/runtime/host_grid.h"

namespace sweep::cuda::host {

constinit thread_local Index3 thread_index, block_index, block_size, grid_size;
constinit thread_local std::byte* block_memory = nullptr;

namespace {

std::atomic<Order> order{Order::kForward};
std::atomic<std::uint64_t> order_seed{0};  // of Order::kRandom
std::atomic<std::uint64_t> grids{0}, overlapped{0};
thread_local Index3 last;
constinit thread_local GridObserver* observer = nullptr;

// In which order `count` threads or blocks run. Of blocks and threads alike, the next order is another one.
class Turns {
 public:
  void begin(unsigned count) {
    order_ = order;
    count_ = count;
    if (order_ != Order::kRandom) return;
    turns_.resize(count);
    std::iota(turns_.begin(), turns_.end(), 0u);
    shuffle(turns_);
  }
  unsigned operator[](unsigned n) const {
    return order_ == Order::kRandom ? turns_[n] : order_ == Order::kForward ? n : count_ - 1 - n;
  }

  template <class T>
  static void shuffle(std::vector<T>& values) {
    thread_local std::uint64_t drawn = 0;
    RandomStream random(order_seed + (++drawn << 20), RandomUse::kSearch);
    for (std::size_t i = values.size(); i > 1; --i)
      std::swap(values[i - 1], values[random.below(static_cast<std::uint32_t>(i))]);
  }

 private:
  Order order_ = Order::kForward;
  unsigned count_ = 0;
  std::vector<unsigned> turns_;  // of kRandom
};

// A copy of copy_async() that has not arrived.
struct Copy {
  float* to;
  const float* from;
};

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
    if (copies_.size() < threads_) copies_.resize(threads_);
    unfinished_ = 0;
    turns_.begin(threads_);
    if (observer != nullptr) observer->begin_block();
    while (started_ < threads_) resume(idle_fiber());
    while (!waiting_.empty()) {
      if (ended_ > 0) {
        // The waiting fibers are in the middle of the kernel and cannot be used again.
        idle_.clear();
        fibers_.clear();
        copies_.clear();
        throw std::logic_error("a kernel's threads end while others of their block wait at a barrier");
      }
      std::vector<Waiting> turn;
      turn.swap(waiting_);
      if (order == Order::kRandom) Turns::shuffle(turn);
      if (observer != nullptr) observer->pass_barrier();
      for (const Waiting& waiting : turn) {
        thread_index = waiting.index;
        resume(waiting.fiber);
      }
    }
    if (unfinished_ > 0) {
      copies_.clear();
      throw std::logic_error("a kernel ends without waiting for its copy_async()");
    }
  }

  void wait() {
    Fiber* fiber = running_;
    waiting_.push_back({fiber, thread_index});
    fiber->yield();
  }

  void add_copy(const Copy& copy) {
    copies_[thread_number()].push_back(copy);
    ++unfinished_;
  }

  void finish_copies() {
    std::vector<Copy>& copies = copies_[thread_number()];
    for (const Copy& copy : copies) {
      if (observer != nullptr) observer->copy(copy.to, copy.from, sizeof(float));
      *copy.to = *copy.from;
    }
    unfinished_ -= copies.size();
    copies.clear();
  }

 private:
  struct Waiting {
    Fiber* fiber;
    Index3 index;
  };

  static unsigned thread_number() {
    return (thread_index.z * block_size.y + thread_index.y) * block_size.x + thread_index.x;
  }

  void resume(Fiber* fiber) {
    running_ = fiber;
    if (observer != nullptr) observer->run_on(fiber->stack());
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
        const unsigned t = turns_[started_++];
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
  std::vector<std::vector<Copy>> copies_;  // of each of the block's threads
  std::size_t unfinished_ = 0;             // copies
  Turns turns_;
  Fiber* running_ = nullptr;
};

// A kernel may run inside another one's wait_for_previous_kernel(), so there are runners for two levels.
constexpr int kLevels = 2;
constinit thread_local int level = -1;
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

// What CUDA allows on every GPU since compute capability 3.0 (CUDA C++ Programming Guide, "Technical
// Specifications per Compute Capability"), and the shared memory of 9.0.
void require_launchable(Index3 grid, Index3 block, std::size_t shared_bytes) {
  const auto require = [](bool holds, const char* what, std::uint64_t got, std::uint64_t most) {
    if (!holds)
      throw std::logic_error("a kernel is launched with " + std::to_string(got) + " " + what +
                             ", want at most " + std::to_string(most));
  };
  constexpr unsigned kMostBlocksX = 0x7FFFFFFF, kMostBlocksYZ = 65535, kMostThreads = 1024,
                     kMostThreadsZ = 64;
  constexpr std::size_t kMostSharedBytes = std::size_t{227} << 10;
  require(grid.x <= kMostBlocksX, "blocks along x", grid.x, kMostBlocksX);
  require(grid.y <= kMostBlocksYZ, "blocks along y", grid.y, kMostBlocksYZ);
  require(grid.z <= kMostBlocksYZ, "blocks along z", grid.z, kMostBlocksYZ);
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  require(threads <= kMostThreads, "threads in a block", threads, kMostThreads);
  require(block.z <= kMostThreadsZ, "threads along z", block.z, kMostThreadsZ);
  require(shared_bytes <= kMostSharedBytes, "bytes of shared memory", shared_bytes, kMostSharedBytes);
}

}  // namespace

void run_grid(Index3 grid, Index3 block, std::size_t shared_bytes, const std::function<void()>& thread,
              const void* kernel) {
  require_launchable(grid, block, shared_bytes);
  const Frame frame;
  ++grids;
  last = grid;
  // Of exactly this size, so that sanitizers see an access beyond it, and filled with NaNs for every block,
  // so that a kernel that relies on zeros, or on what the block before it left, fails.
  std::vector<std::byte> memory(shared_bytes);
  block_memory = memory.data();
  grid_size = grid;
  block_size = block;
  BlockRunner& blocks = runner();
  const unsigned count = grid.x * grid.y * grid.z;
  Turns turns;
  turns.begin(count);
  if (observer != nullptr) observer->begin_grid(kernel, memory);
  for (unsigned n = 0; n < count; ++n) {
    const unsigned b = turns[n];
    block_index = {b % grid.x, b / grid.x % grid.y, b / (grid.x * grid.y)};
    if (!memory.empty()) std::memset(memory.data(), 0xFF, memory.size());
    blocks.run(thread);
  }
  if (observer != nullptr) observer->end_grid();
}

void wait_for_block() { runner().wait(); }

void add_atomically(std::uint32_t* counter, std::uint32_t more) {
  if (observer != nullptr)
    observer->access({counter, sizeof *counter, AccessKind::kAtomic, __builtin_return_address(0)});
  *counter += more;
}

void copy_async(float* shared, const float* global) { runner().add_copy({shared, global}); }
void wait_for_copies() { runner().finish_copies(); }

void set_grid_observer(GridObserver* value) { observer = value; }
GridObserver* running_grid_observer() { return level >= 0 ? observer : nullptr; }

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

void set_order(Order value, std::uint64_t seed) {
  order = value;
  order_seed = seed;
}

std::uint64_t grids_run() { return grids; }
std::uint64_t grids_overlapped() { return overlapped; }
Index3 last_grid() { return last; }

}  // namespace sweep::cuda::host
