// Runs kernels on the host: blocks one after the other, the threads of a block as fibers that take turns.
#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "tests/cudart/fiber.h"
#include "tests/cudart/grid.h"
#include "tests/cudart/grid_observer.h"

namespace sweep::cuda::cudart {

constinit thread_local Index3 thread_index, block_index, block_size, grid_size;
constinit thread_local std::byte* block_memory = nullptr;

namespace {

std::atomic<Order> order{Order::kForward};
std::atomic<std::uint64_t> order_seed{0};  // of Order::kRandom
std::atomic<std::uint64_t> grid_numbers{0};
thread_local Index3 last;
constinit thread_local GridObserver* observer = nullptr;
constinit thread_local bool runs = false;  // a grid does

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

constexpr std::size_t kLargestCopy = 16;  // bytes

// A copy of copy_async() that has not arrived. Before the wait for the previous kernel its value is read at
// once, else when it arrives.
struct Copy {
  void* to;
  std::uint32_t before;  // the copy that its thread started before it: its number from 1; 0: none
  std::uint16_t bytes;
  bool is_read;
  union {
    const void* from;
    std::array<std::byte, kLargestCopy> value;  // if is_read
  };
};

// What a block keeps between the two parts of its kernel.
struct BlockState {
  std::vector<std::byte> shared;
  std::vector<Copy> copies;
  std::vector<std::uint32_t> last;  // of each thread, as Copy::before
  std::size_t unfinished = 0;       // copies
};

// Blocks of a grid. Their memory is that of blocks that have ended: new memory would cost the host more than
// the kernel. Their shared memory is of this size exactly, so that sanitizers see an access beyond it.
class Blocks {
 public:
  Blocks(std::size_t count, std::size_t shared_bytes) : spare_(spares()[shared_bytes]) {
    for (; blocks_.size() < count && !spare_.empty(); spare_.pop_back())
      blocks_.push_back(std::move(spare_.back()));
    blocks_.resize(count);
    for (BlockState& block : blocks_) {
      block.shared.resize(shared_bytes);
      block.copies.clear();
      block.last.clear();
      block.unfinished = 0;
    }
  }
  ~Blocks() {
    for (BlockState& block : blocks_) spare_.push_back(std::move(block));
  }
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;
  BlockState& operator[](std::size_t b) { return blocks_[b]; }

 private:
  static std::map<std::size_t, std::vector<BlockState>>& spares() {
    thread_local std::map<std::size_t, std::vector<BlockState>> by_bytes;
    return by_bytes;
  }

  std::vector<BlockState>& spare_;
  std::vector<BlockState> blocks_;
};

// Runs blocks. A block starts with one fiber, which runs one thread after the other until a thread reaches a
// barrier. That fiber then waits, and another one goes on with the remaining threads. So a kernel without
// barriers needs one fiber, and one with barriers as many as threads. When every thread waits or has ended,
// all waiting fibers go on, in the order in which they came to the barrier. Fibers, and their stacks, are
// reused from block to block.
class BlockRunner {
 public:
  // One block of the built-in variables' size. `early`: its kernel goes on later.
  void run(const std::function<void()>& thread, BlockState& block, bool early) {
    thread_ = &thread;
    block_ = &block;
    early_ = early;
    threads_ = block_size.x * block_size.y * block_size.z;
    started_ = ended_ = 0;
    waiting_.clear();
    block.last.resize(threads_);
    turns_.begin(threads_);
    if (observer != nullptr) observer->begin_block(block.shared);
    while (started_ < threads_) resume(idle_fiber());
    while (!waiting_.empty()) {
      if (ended_ > 0) {
        // The waiting fibers are in the middle of the kernel and cannot be used again.
        idle_.clear();
        fibers_.clear();
        throw std::logic_error("a kernel's threads end while others of their block wait at a barrier");
      }
      turn_.swap(waiting_);
      waiting_.clear();
      if (order == Order::kRandom) Turns::shuffle(turn_);
      if (observer != nullptr) observer->pass_barrier();
      for (std::size_t i = 0; i < turn_.size(); ++i) {
        if (i + 2 < turn_.size()) turn_[i + 2].fiber->prefetch();
        thread_index = turn_[i].index;
        resume(turn_[i].fiber);
      }
    }
    if (std::exchange(is_stale_, false))
      throw std::logic_error("a kernel copies before its wait what its L1 cache may hold from before");
    if (const std::size_t bytes = std::exchange(misaligned_bytes_, 0); bytes > 0)  // fibers cannot throw
      throw std::logic_error("a kernel copies " + std::to_string(bytes) +
                             " bytes at an address that is no multiple of them");
    if (!early && block.unfinished > 0)
      throw std::logic_error("a kernel ends without waiting for its copy_async()");
  }

  void wait() {
    Fiber* fiber = running_;
    waiting_.push_back({fiber, thread_index});
    fiber->yield();
  }

  // `code`: where the kernel calls it.
  void add_copy(void* to, const void* from, std::size_t bytes, bool early, const void* code) {
    is_stale_ = is_stale_ || (early_ && !early);
    for (const void* address : {static_cast<const void*>(to), from})
      if (reinterpret_cast<std::uintptr_t>(address) % bytes != 0) misaligned_bytes_ = bytes;
    std::uint32_t& previous = block_->last[thread_number()];
    Copy& copy = block_->copies.emplace_back();
    copy.to = to;
    copy.before = std::exchange(previous, static_cast<std::uint32_t>(block_->copies.size()));
    copy.bytes = static_cast<std::uint16_t>(bytes);
    copy.is_read = early_;
    ++block_->unfinished;
    if (!early_) {
      copy.from = from;
      return;
    }
    if (observer != nullptr) observer->access({from, bytes, AccessKind::kRead, code});
    std::memcpy(copy.value.data(), from, bytes);
  }

  void finish_copies(const void* code) {
    for (std::uint32_t n = std::exchange(block_->last[thread_number()], 0); n > 0;) {
      const Copy& copy = block_->copies[n - 1];
      if (observer != nullptr && !copy.is_read)
        observer->access({copy.from, copy.bytes, AccessKind::kRead, code});
      if (observer != nullptr) observer->access({copy.to, copy.bytes, AccessKind::kWrite, code});
      std::memcpy(copy.to, copy.is_read ? copy.value.data() : copy.from, copy.bytes);
      --block_->unfinished;
      n = copy.before;
    }
    if (block_->unfinished == 0) block_->copies.clear();
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
        thread_index = {t, 0, 0};
        if (threads_ != block_size.x)
          thread_index = {t % block_size.x, t / block_size.x % block_size.y,
                          t / (block_size.x * block_size.y)};
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
  std::vector<Waiting> waiting_, turn_;  // turn_: those that waited and go on
  BlockState* block_ = nullptr;
  bool early_ = false;
  std::size_t misaligned_bytes_ = 0;  // of a copy that a GPU would not do; 0: none
  bool is_stale_ = false;             // whether a copy before the wait goes through the L1 cache
  Turns turns_;
  Fiber* running_ = nullptr;
};

BlockRunner& runner() {
  thread_local BlockRunner instance;
  return instance;
}

// What CUDA allows on every GPU since compute capability 3.0 (CUDA C++ Programming Guide, "Technical
// Specifications per Compute Capability"), and the shared memory of 9.0.
void require_launchable(Index3 grid, Index3 block, std::size_t shared_bytes) {
  const auto require = [](bool holds, const char* what, std::uint64_t got, std::uint64_t most) {
    if (!holds)
      throw std::logic_error("a kernel is launched with " + std::to_string(got) + " " + what +
                             ", want at most " + std::to_string(most));
  };
  constexpr unsigned kMaxBlocksX = 0x7FFFFFFF, kMaxBlocksYZ = 65535, kMaxThreads = 1024, kMaxThreadsZ = 64;
  constexpr std::size_t kMaxSharedBytes = std::size_t{227} << 10;
  require(grid.x <= kMaxBlocksX, "blocks along x", grid.x, kMaxBlocksX);
  require(grid.y <= kMaxBlocksYZ, "blocks along y", grid.y, kMaxBlocksYZ);
  require(grid.z <= kMaxBlocksYZ, "blocks along z", grid.z, kMaxBlocksYZ);
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  require(threads <= kMaxThreads, "threads in a block", threads, kMaxThreads);
  require(block.z <= kMaxThreadsZ, "threads along z", block.z, kMaxThreadsZ);
  require(shared_bytes <= kMaxSharedBytes, "bytes of shared memory", shared_bytes, kMaxSharedBytes);
}

// For every block, so that a kernel that relies on zeros, or on what the block before it left, fails.
void fill_with_nans(std::vector<std::byte>& shared) {
  if (!shared.empty()) std::memset(shared.data(), 0xFF, shared.size());
}

// Says for its lifetime that a grid runs.
struct Runs {
  Runs() { runs = true; }
  ~Runs() { runs = false; }
  Runs(const Runs&) = delete;
  Runs& operator=(const Runs&) = delete;
};

// Runs a part of the grid: thread `thread` of every block. block_state(b): what the block b has.
void run_blocks(Index3 grid, Index3 block, GridPart part, const std::function<void()>& thread,
                const std::function<BlockState&(unsigned)>& block_state) {
  grid_size = grid;
  block_size = block;
  const unsigned count = grid.x * grid.y * grid.z;
  Turns turns;
  turns.begin(count);
  if (observer != nullptr) observer->begin_grid(part);
  const Runs running;
  for (unsigned n = 0; n < count; ++n) {
    const unsigned b = turns[n];
    block_index = {b % grid.x, b / grid.x % grid.y, b / (grid.x * grid.y)};
    BlockState& state = block_state(b);
    block_memory = state.shared.data();
    runner().run(thread, state, part.is_early);
  }
  block_memory = nullptr;
  if (observer != nullptr) observer->end_grid();
}

}  // namespace

void run_grid(Index3 grid, Index3 block, std::size_t shared_bytes, const std::function<void()>& thread,
              const void* kernel) {
  require_launchable(grid, block, shared_bytes);
  last = grid;
  Blocks blocks(1, shared_bytes);
  const GridPart part{.grid = ++grid_numbers, .is_early = false, .kernel = kernel};
  run_blocks(grid, block, part, thread, [&](unsigned) -> BlockState& {
    fill_with_nans(blocks[0].shared);
    return blocks[0];
  });
}

struct StartedGrid::State {
  Index3 grid, block;
  std::uint64_t number;
  const void* kernel;
  Blocks blocks;
};

StartedGrid::StartedGrid(Index3 grid, Index3 block, std::size_t shared_bytes,
                         const std::function<void()>& early, const void* kernel)
    : state_(new State{
          grid, block, ++grid_numbers, kernel, {std::size_t{grid.x} * grid.y * grid.z, shared_bytes}}) {
  require_launchable(grid, block, shared_bytes);
  const GridPart part{.grid = state_->number, .is_early = true, .kernel = kernel};
  run_blocks(grid, block, part, early, [&](unsigned b) -> BlockState& {
    fill_with_nans(state_->blocks[b].shared);
    return state_->blocks[b];
  });
}

StartedGrid::~StartedGrid() = default;

void StartedGrid::finish(const std::function<void()>& thread) {
  last = state_->grid;
  const GridPart part{.grid = state_->number, .is_early = false, .kernel = state_->kernel};
  run_blocks(state_->grid, state_->block, part, thread,
             [&](unsigned b) -> BlockState& { return state_->blocks[b]; });
}

void wait_for_block() { runner().wait(); }

void add_atomically(std::uint32_t* counter, std::uint32_t more) {
  if (observer != nullptr)
    observer->access({counter, sizeof *counter, AccessKind::kAtomic, __builtin_return_address(0)});
  *counter += more;
}

void copy_async(void* shared, const void* global, std::size_t bytes, bool early) {
  runner().add_copy(shared, global, bytes, early, __builtin_return_address(0));
}
void wait_for_copies() { runner().finish_copies(__builtin_return_address(0)); }

void set_grid_observer(GridObserver* value) { observer = value; }
GridObserver* running_grid_observer() { return runs ? observer : nullptr; }

void set_order(Order value, std::uint64_t seed) {
  order = value;
  order_seed = seed;
}

Index3 last_grid() { return last; }

}  // namespace sweep::cuda::cudart
