// Runs kernels on the host: blocks one after the other, the threads of a block as fibers that take turns.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "tests/cudart/fiber.h"
#include "tests/cudart/grid.h"
#include "tests/cudart/race_check.h"

namespace sweep::cuda::cudart {

constinit thread_local Index3 thread_index, block_index, block_size, grid_size;
constinit thread_local std::byte* block_memory = nullptr;

namespace {

std::atomic<Order> order{Order::kForward};
std::atomic<std::uint64_t> order_seed{0};  // of Order::kRandom
std::atomic<std::uint64_t> grid_numbers{0};
thread_local Index3 last;
constinit thread_local RaceCheck* race_check = nullptr;
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

// A copy of copy_async() that has not arrived.
struct Copy {
  void* to;
  const void* from;
  std::uint32_t before;  // the copy that its thread started before it: its number from 1; 0: none
  std::uint32_t bytes;
};

// A block's dynamic shared memory, of this size exactly, so that sanitizers see an access beyond it. It was
// that of earlier grids: new memory would cost the host more than the kernel.
std::vector<std::byte>& shared_memory(std::size_t bytes) {
  thread_local std::map<std::size_t, std::vector<std::byte>> by_bytes;
  std::vector<std::byte>& shared = by_bytes[bytes];
  shared.resize(bytes);
  return shared;
}

// Runs blocks. A block starts with one fiber, which runs one thread after the other until a thread reaches a
// barrier. That fiber then waits, and another one goes on with the remaining threads. So a kernel without
// barriers needs one fiber, and one with barriers as many as threads. When every thread waits or has ended,
// all waiting fibers go on, in the order in which they came to the barrier. A fiber switches to the next one
// itself, and only the last one to run(). Fibers, and their stacks, are reused from block to block.
class BlockRunner {
 public:
  // One block of the built-in variables' size.
  void run(const std::function<void()>& thread, std::span<const std::byte> shared) {
    thread_ = &thread;
    threads_ = block_size.x * block_size.y * block_size.z;
    started_ = ended_ = 0;
    waiting_.clear();
    turn_.clear();
    next_ = 0;
    copies_.clear();
    last_copies_.assign(threads_, 0);
    unfinished_copies_ = 0;
    turns_.begin(threads_);
    if (race_check != nullptr) race_check->begin_block(shared);
    let_next_run(own_stack_);
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
      if (race_check != nullptr) race_check->pass_barrier();
      next_ = 0;
      let_next_run(own_stack_);
    }
    if (const std::size_t bytes = std::exchange(misaligned_bytes_, 0); bytes > 0)  // fibers cannot throw
      throw std::logic_error("a kernel copies " + std::to_string(bytes) +
                             " bytes at an address that is no multiple of them");
    if (unfinished_copies_ > 0) throw std::logic_error("a kernel ends without waiting for its copy_async()");
  }

  void wait() {
    waiting_.push_back({running_, thread_index, __builtin_frame_address(0)});
    let_next_run(*running_);
  }

  void add_copy(void* to, const void* from, std::size_t bytes) {
    for (const void* address : {static_cast<const void*>(to), from})
      if ((reinterpret_cast<std::uintptr_t>(address) & (bytes - 1)) != 0) misaligned_bytes_ = bytes;
    std::uint32_t& previous = last_copies_[thread_number()];
    copies_.push_back({to, from, previous, static_cast<std::uint32_t>(bytes)});
    previous = static_cast<std::uint32_t>(copies_.size());
    ++unfinished_copies_;
  }

  // `code`: where the kernel calls it.
  void finish_copies(const void* code) {
    for (std::uint32_t n = std::exchange(last_copies_[thread_number()], 0); n > 0;) {
      const Copy& copy = copies_[n - 1];
      if (race_check != nullptr) {
        race_check->access(copy.from, copy.bytes, AccessKind::kRead, code);
        race_check->access(copy.to, copy.bytes, AccessKind::kWrite, code);
      }
      if (copy.bytes == sizeof(float))  // a number that the compiler knows takes no call
        std::memcpy(copy.to, copy.from, sizeof(float));
      else
        std::memcpy(copy.to, copy.from, copy.bytes);
      --unfinished_copies_;
      n = copy.before;
    }
    if (unfinished_copies_ == 0) copies_.clear();
  }

 private:
  struct Waiting {
    Fiber* fiber;
    Index3 index;
    const void* frame;  // on its stack
  };

  static unsigned thread_number() {
    return (thread_index.z * block_size.y + thread_index.y) * block_size.x + thread_index.x;
  }

  // Brings what a fiber that soon goes on needs first to the cache: its registers, and the frames of the
  // barrier and its caller.
  static void prefetch(const Waiting& waiting) {
    constexpr int kLine = 64, kBefore = 1, kAfter = 2;
    for (int line = -kBefore; line <= kAfter; ++line)
      __builtin_prefetch(static_cast<const char*>(waiting.frame) + line * kLine);
  }

  // Called on `self`: the next fiber of this turn runs, or one for threads that have not started, or run() if
  // there is none.
  void let_next_run(Fiber& self) {
    Fiber* next = &own_stack_;
    if (next_ < turn_.size()) {
      next = turn_[next_].fiber;
      thread_index = turn_[next_].index;
      if (++next_ + 1 < turn_.size()) prefetch(turn_[next_ + 1]);
    } else if (started_ < threads_) {
      next = idle_fiber();
    }
    running_ = next;
    if (race_check != nullptr && next != &own_stack_) race_check->run_on(next->stack());
    self.switch_to(*next);
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
      let_next_run(*self);
    }
  }

  const std::function<void()>* thread_ = nullptr;
  unsigned threads_ = 0, started_ = 0, ended_ = 0;
  Fiber own_stack_;  // of run()
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
  std::vector<Waiting> waiting_, turn_;  // turn_: those that waited and go on, from next_ on
  std::size_t next_ = 0;
  std::vector<Copy> copies_;
  std::vector<std::uint32_t> last_copies_;  // of each thread, as Copy::before
  std::size_t unfinished_copies_ = 0;
  std::size_t misaligned_bytes_ = 0;  // of a copy that a GPU would not do; 0: none
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

// The kernels that have been launched, by their address.
struct Kernels {
  std::mutex mutex;
  std::map<const void*, KernelType> types;
};

Kernels& kernels() {
  static Kernels all;
  return all;
}

// Says for its lifetime that a grid runs.
struct Runs {
  Runs() { runs = true; }
  ~Runs() { runs = false; }
  Runs(const Runs&) = delete;
  Runs& operator=(const Runs&) = delete;
};

}  // namespace

void run_grid(Index3 grid, Index3 block, std::size_t shared_bytes, const std::function<void()>& thread) {
  require_launchable(grid, block, shared_bytes);
  last = grid;
  grid_size = grid;
  block_size = block;
  std::vector<std::byte>& shared = shared_memory(shared_bytes);
  const unsigned count = grid.x * grid.y * grid.z;
  Turns turns;
  turns.begin(count);
  if (race_check != nullptr) race_check->begin_grid(++grid_numbers);
  const Runs running;
  block_memory = shared.data();
  for (unsigned n = 0; n < count; ++n) {
    const unsigned b = turns[n];
    block_index = {b % grid.x, b / grid.x % grid.y, b / (grid.x * grid.y)};
    // NaNs, so that a kernel that relies on zeros, or on what the block before it left, fails.
    std::ranges::fill(shared, std::byte{0xFF});
    runner().run(thread, shared);
  }
  block_memory = nullptr;
}

void wait_for_block() { runner().wait(); }

void add_atomically(std::uint32_t* counter, std::uint32_t more) {
  if (race_check != nullptr)
    race_check->access(counter, sizeof *counter, AccessKind::kAtomic, __builtin_return_address(0));
  *counter += more;
}

void copy_async(void* shared, const void* global, std::size_t bytes) {
  runner().add_copy(shared, global, bytes);
}
void wait_for_copies() { runner().finish_copies(__builtin_return_address(0)); }

void set_race_check(RaceCheck* value) { race_check = value; }
RaceCheck* running_race_check() { return runs ? race_check : nullptr; }

void set_order(Order value, std::uint64_t seed) {
  order = value;
  order_seed = seed;
}

Index3 last_grid() { return last; }

void register_kernel(const void* kernel, const KernelType& type) {
  const std::scoped_lock lock(kernels().mutex);
  kernels().types.try_emplace(kernel, type);
}

const KernelType& type_of(const void* kernel) {
  const std::scoped_lock lock(kernels().mutex);
  const auto found = kernels().types.find(kernel);
  if (found == kernels().types.end())
    throw std::logic_error("a kernel is launched that launch() does not know");
  return found->second;  // A map's elements stay where they are.
}

std::function<void()> launch_of(const void* kernel, Index3 grid, Index3 block, std::size_t shared_bytes,
                                void** arguments) {
  struct Call {
    const KernelType& type;
    std::vector<std::vector<std::byte>> arguments;
    std::vector<void*> pointers;
  };
  const auto call = std::make_shared<Call>(Call{type_of(kernel), {}, {}});
  for (std::size_t i = 0; i < call->type.parameters.size(); ++i) {
    const auto* from = static_cast<const std::byte*>(arguments[i]);
    call->arguments.emplace_back(from, from + call->type.parameters[i].size());
  }
  for (std::vector<std::byte>& argument : call->arguments) call->pointers.push_back(argument.data());
  return
      [=] { run_grid(grid, block, shared_bytes, [&] { call->type.call(kernel, call->pointers.data()); }); };
}

}  // namespace sweep::cuda::cudart
