// A machine with GPUs for the CUDA runtime API, made of the host's memory: what programs get that are linked
// with it in NVIDIA's library's place. It holds callers to the API's rules, and calls fail as a test says.
//
// Work is done as late as it may be, when somebody waits; device memory begins as NaNs; kernels run their
// twins on the host. Sources of the rules: the CUDA Runtime API manual 13.0, and in the CUDA C++ Programming
// Guide "Asynchronous Concurrent Execution" and "CUDA Graphs".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sweep::cuda::cudart {

// Does not use CUDA's headers: with them kernels cannot be compiled for the host. Errors have the names and
// numbers of the manual.
enum class CallError {
  kMemoryAllocation = 2,
  kContained = 226,
  kOperatingSystem = 304,
  kIllegalAddress = 700,
  kLaunchFailure = 719,
  kTensorMemoryLeak = 721,
  kSystemDriverMismatch = 803,
  kMpsClientTerminated = 810,
  kUnknown = 999
};

/// Devices of a machine unless a test says otherwise.
inline constexpr int kDevices = 8;

struct Machine {
  // The newest CUDA that the driver knows, 1000 · major + 10 · minor; 0: no driver; nothing: this build's.
  std::optional<int> driver = {};
  int devices = kDevices;                           // of them CUDA_VISIBLE_DEVICES may hide some
  std::size_t memory_bytes = std::size_t{4} << 30;  // of each device
  bool has_peer_access = true;                      // between all of them
  int multiprocessors = 132;
  std::size_t shared_bytes = std::size_t{227} << 10;  // that a block may have
};

/// Makes a new machine; programs that want the one above need not call this. Clears the failures, allocations
/// and errors of the previous one, but keeps the attributes of kernels, which the program reads only once. No
/// stream may be alive.
void start(const Machine& machine);

/// Lets a later call of `function`, such as "cudaMalloc", return `error` and do nothing, but wait if that is
/// what it does: the next one, or the one after `calls_before` others.
void fail(const std::string& function, CallError error, int calls_before = 0);

/// Lets the kernel that runs after `kernels_before` others end with `error`. That call and all later ones of
/// the process return it, whatever they are ("sticky").
void fail_kernel(CallError error, int kernels_before = 0);

/// What callers did that the API forbids or leaves undefined, and that it may not report: double frees, use
/// of what was destroyed, copies beyond an allocation.
std::vector<std::string> mistakes();

/// What exists at the moment.
struct Alive {
  std::size_t device_bytes = 0, pinned_bytes = 0;
  std::size_t streams = 0, events = 0, graphs = 0, executables = 0;
  bool operator==(const Alive&) const = default;
};
Alive alive();

/// Bytes of device memory that are allocated.
std::size_t memory_in_use();

/// While it exists, all devices together get `more` bytes of memory at most, whatever each has. One at a
/// time.
class MemoryLimit {
 public:
  explicit MemoryLimit(std::size_t more);
  ~MemoryLimit();
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;
};

/// Sets when streams work, in all threads. 0, as at first: as late as they may, when somebody waits. Any
/// other seed: each stream switches at random between working at once and as late as it may, independently of
/// the other streams. A program whose results depend on the seed lacks an event, or uses memory before a copy
/// is done.
void set_stream_seed(std::uint64_t seed);

/// Calls of `function` since start().
int calls(const std::string& function);

/// Kernels that ran.
int kernels_run();

/// What the stand-in libraries can do. Tests change it to get other libraries.
struct LibraryLimits {
  bool installed = true;
  std::string version = "stand-in";
  int fewest_images = 1;  // no plans for fewer
  std::size_t workspace_bytes = 1000;
  bool refuses = false;             // to run what it has planned
  bool has_input_gradients = true;  // plans for Direction::kBackwardInput
  bool has_any_order = true;        // algorithms that are not deterministic, for tasks that do not mind
};

/// Sets the limits of the calling thread's libraries, of open ones too, and has installed ones opened again.
void set_library_limits(const LibraryLimits& limits);

/// How often the process has opened a library.
int libraries_opened();

}  // namespace sweep::cuda::cudart
