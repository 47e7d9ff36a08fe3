// What the machine of machine.h consists of.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdlib>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tests/cudart/machine.h"

namespace sweep::cuda::cudart {

// A piece of a stream's work.
struct Work {
  std::function<void()> run;
  bool is_kernel = false;
  bool is_exchange = false;  // with other devices, which may not have begun with it
};

struct FreeMemory {
  void operator()(std::byte* memory) const { std::free(memory); }
};
struct Allocation {
  std::unique_ptr<std::byte, FreeMemory> memory;
  std::size_t bytes = 0;
  int device = 0;  // kHost: pinned memory
};
inline constexpr int kHost = -1;

inline constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();

struct Failure {
  std::string function;
  cudaError_t error;
  int calls_before;
};

// What start() makes anew.
struct MachineState {
  Machine machine;
  std::map<std::string, int, std::less<>> calls = {};
  std::vector<Failure> failures = {};
  std::vector<std::string> mistakes = {};
  cudaError_t sticky = cudaSuccess;
  std::map<const std::byte*, Allocation> allocations = {};  // by where they begin
  std::set<cudaEvent_t> events = {};
  std::set<cudaGraph_t> graphs = {};
  std::set<cudaGraphExec_t> executables = {};
  std::set<std::pair<int, int>> peers = {};  // the first device reaches the second one's memory
  int kernels_run = 0;
  int kernel_failure_after = -1;  // kernels; -1: none fails
  cudaError_t kernel_failure = cudaSuccess;
};

struct State : MachineState {
  std::recursive_mutex mutex;                                  // of everything; kernels run under it
  std::vector<std::unique_ptr<std::byte, FreeMemory>> unused;  // see allocate()
  std::set<cudaStream_t> streams;
  std::map<std::pair<int, const void*>, std::size_t> shared_limits;  // of kernels, on a device
  int exchanging = 0;                                                // devices that are in an exchange
  std::size_t memory_limit = kUnlimited;                             // of all devices together
  std::uint64_t stream_seed = 0, seeds_set = 0;                      // see set_stream_seed()

  /// The allocation with all of `bytes` bytes from `address`; nullptr: there is none.
  const Allocation* find(const void* address, std::size_t bytes) const;
  std::size_t used(int device) const;
  std::size_t left() const;  // of memory_limit
  /// Those of the machine that CUDA_VISIBLE_DEVICES does not hide.
  int devices() const;
  void mistake(const std::string& what) { mistakes.push_back(what); }
};

State& state();

/// That of the calling thread.
int& current_device();

/// Whether the calling thread captures a graph.
bool& captures();

/// Counts a call, and returns what it has to fail with: the sticky error, or one that fail() asked for. Every
/// function that can fail begins with it.
cudaError_t begin_call(const char* function);

/// How a function of the API begins: it has the machine for itself, named `name`, and fails if it has to.
#define SWEEP_BEGIN_CALL(name)               \
  [[maybe_unused]] State& name = state();    \
  const std::scoped_lock lock((name).mutex); \
  if (const cudaError_t failure = begin_call(__func__)) return failure

/// Keeps an error for cudaGetLastError().
cudaError_t failed(cudaError_t error);

/// Before what may let the driver wait for all of the current device's work: a mistake while it exchanges.
/// `of_any_device`: for the work of any device of the process, each of which may wait for this one.
void require_no_exchange(const char* doing, bool of_any_device = false);

/// While it exists, a device of the process is in an exchange, and may wait for the others.
class Exchanging {
 public:
  Exchanging();
  ~Exchanging();
  Exchanging(const Exchanging&) = delete;
  Exchanging& operator=(const Exchanging&) = delete;
};

/// Does the stream's work up to `count`; returns the sticky error, if it has one.
cudaError_t run_until(cudaStream_t stream, std::uint64_t count);
cudaError_t run_all_streams(int device);

/// Before the work `what`, which was given these addresses when they were of allocated memory: whether they
/// still are. If not, that is a mistake.
bool is_there(const std::vector<const void*>& addresses, const char* what);

/// Puts work on a stream, or into the graph that it captures.
cudaError_t add_work(cudaStream_t stream, Work work);

}  // namespace sweep::cuda::cudart

struct CUstream_st {
  explicit CUstream_st(int of_device) : device(of_device) {}
  const int device;
  std::deque<sweep::cuda::cudart::Work> queue;
  std::uint64_t added = 0, done = 0;
  bool eager = false;             // works at once, as set_stream_seed() has it
  cudaGraph_t capture = nullptr;  // what it captures
  bool capture_is_invalid = false;
};

struct CUevent_st {
  CUevent_st(int of_device, bool keeps_time) : device(of_device), has_time(keeps_time) {}
  const int device;
  const bool has_time;
  cudaStream_t stream = nullptr;  // nullptr: never recorded
  std::uint64_t position = 0;     // in the stream's work
  bool captured = false;
  std::shared_ptr<double> seconds = std::make_shared<double>(-1);  // when the stream was there; < 0: not yet
};

struct CUgraph_st {
  std::vector<sweep::cuda::cudart::Work> work;
};

struct CUgraphExec_st {
  std::vector<sweep::cuda::cudart::Work> work;
};
