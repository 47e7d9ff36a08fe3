#include "tests/cudart/machine.h"

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "core/base/random.h"
#include "tests/cudart/grid.h"
#include "tests/cudart/state.h"

namespace sweep::cuda::cudart {

namespace {

thread_local cudaError_t last_error = cudaSuccess;

static_assert(static_cast<int>(CallError::kMemoryAllocation) == cudaErrorMemoryAllocation);
static_assert(static_cast<int>(CallError::kIllegalAddress) == cudaErrorIllegalAddress);
static_assert(static_cast<int>(CallError::kLaunchFailure) == cudaErrorLaunchFailure);
static_assert(static_cast<int>(CallError::kOperatingSystem) == cudaErrorOperatingSystem);
static_assert(static_cast<int>(CallError::kSystemDriverMismatch) == cudaErrorSystemDriverMismatch);
static_assert(static_cast<int>(CallError::kUnknown) == cudaErrorUnknown);
cudaError_t native(CallError error) { return static_cast<cudaError_t>(error); }

}  // namespace

State& state() {
  static State all;
  return all;
}

int& current_device() {
  thread_local int device = 0;
  return device;
}

bool& captures() {
  thread_local bool value = false;
  return value;
}

MemoryLimit::MemoryLimit(std::size_t more) {
  const std::scoped_lock lock(state().mutex);
  state().memory_limit = memory_in_use() + more;
}

MemoryLimit::~MemoryLimit() {
  const std::scoped_lock lock(state().mutex);
  state().memory_limit = kUnlimited;
}

std::size_t memory_in_use() { return alive().device_bytes; }

void set_stream_seed(std::uint64_t seed) {
  const std::scoped_lock lock(state().mutex);
  state().stream_seed = seed;
  ++state().seeds_set;
}

void start(const Machine& machine) {
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  if (!s.streams.empty()) throw std::logic_error("a stream of the last machine is alive");
  static_cast<MachineState&>(s) = {.machine = machine};
  current_device() = 0;
  last_error = cudaSuccess;
}

void fail(const std::string& function, CallError error, int calls_before) {
  const std::scoped_lock lock(state().mutex);
  state().failures.push_back({function, native(error), calls_before});
}

void fail_kernel(CallError error, int kernels_before) {
  const std::scoped_lock lock(state().mutex);
  state().kernel_failure = native(error);
  state().kernel_failure_after = kernels_before;
}

std::vector<std::string> mistakes() {
  const std::scoped_lock lock(state().mutex);
  return state().mistakes;
}

Alive alive() {
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  Alive alive{.streams = s.streams.size(),
              .events = s.events.size(),
              .graphs = s.graphs.size(),
              .executables = s.executables.size()};
  for (const auto& [begin, allocation] : s.allocations)
    (allocation.device == kHost ? alive.pinned_bytes : alive.device_bytes) += allocation.bytes;
  return alive;
}

int calls(const std::string& function) {
  const std::scoped_lock lock(state().mutex);
  return state().calls[function];
}

int kernels_run() { return state().kernels_run; }

const Allocation* State::find(const void* address, std::size_t bytes) const {
  const auto* begin = static_cast<const std::byte*>(address);
  auto found = allocations.upper_bound(begin);
  if (found == allocations.begin()) return nullptr;
  --found;
  const auto offset = static_cast<std::size_t>(begin - found->first);
  const std::size_t size = found->second.bytes;
  return offset < size && bytes <= size - offset ? &found->second : nullptr;
}

std::size_t State::left() const {
  const std::size_t taken = memory_in_use();
  return taken < memory_limit ? memory_limit - taken : 0;
}

std::size_t State::used(int device) const {
  std::size_t bytes = 0;
  for (const auto& [begin, allocation] : allocations)
    bytes += allocation.device == device ? allocation.bytes : 0;
  return bytes;
}

cudaError_t failed(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

cudaError_t begin_call(const char* function) {
  State& s = state();
  const auto called = s.calls.find(std::string_view(function));
  ++(called != s.calls.end() ? called->second : s.calls[function]);
  if (s.sticky != cudaSuccess) return failed(s.sticky);
  for (auto failure = s.failures.begin(); failure != s.failures.end(); ++failure) {
    if (failure->function != function || failure->calls_before-- > 0) continue;
    const cudaError_t error = failure->error;
    s.failures.erase(failure);
    return failed(error);
  }
  return cudaSuccess;
}

namespace {

// Work that a stream collects at most: nobody may ever wait for a training stream.
constexpr std::size_t kLongestQueue = 4096;

// Pieces of work, on average, after which a stream switches between eager and lazy: a few steps' work.
constexpr std::uint32_t kWorkPerSwitch = 60;

// The calling thread's chances; nullptr without a seed.
RandomStream* chance() {
  thread_local std::optional<RandomStream> random;
  thread_local std::uint64_t set = 0;
  static std::atomic<std::uint64_t> threads{0};
  thread_local const std::uint64_t number = threads++;
  if (set != state().seeds_set) {
    set = state().seeds_set;
    random.reset();
    if (state().stream_seed != 0) random.emplace(state().stream_seed + (number << 32), RandomUse::kSearch);
  }
  return random ? &*random : nullptr;
}

Work pop(cudaStream_t stream) {
  Work work = std::move(stream->queue.front());
  stream->queue.pop_front();
  ++stream->done;
  return work;
}

// Whether a kernel may run now; otherwise the machine is broken from here on.
bool kernel_succeeds() {
  State& s = state();
  ++s.kernels_run;
  if (s.kernel_failure_after < 0 || s.kernel_failure_after-- > 0) return true;
  s.sticky = s.kernel_failure;
  return false;
}

}  // namespace

cudaError_t run_until(cudaStream_t stream, std::uint64_t count) {
  State& s = state();
  while (stream->done < count && s.sticky == cudaSuccess) {
    const Work work = pop(stream);
    if (work.is_kernel && !kernel_succeeds()) break;
    work.run();
  }
  if (s.sticky == cudaSuccess) return cudaSuccess;
  stream->queue.clear();
  stream->done = stream->added;
  return failed(s.sticky);
}

void require_no_exchange(const char* doing, bool of_any_device) {
  if (of_any_device && state().exchanging > 0)
    state().mistake(std::string(doing) + " while another device exchanges");
  for (const cudaStream_t stream : state().streams) {
    if (stream->device == current_device() &&
        std::ranges::any_of(stream->queue, [](const Work& work) { return work.is_exchange; }))
      state().mistake(std::string(doing) + " while the device exchanges with others");
  }
}

Exchanging::Exchanging() {
  const std::scoped_lock lock(state().mutex);
  ++state().exchanging;
}

Exchanging::~Exchanging() {
  const std::scoped_lock lock(state().mutex);
  --state().exchanging;
}

cudaError_t run_all_streams(int device) {
  for (const cudaStream_t stream : state().streams) {
    if (stream->device != device || stream->capture != nullptr) continue;
    const cudaError_t error = run_until(stream, stream->added);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

bool is_there(const std::vector<const void*>& addresses, const char* what) {
  State& s = state();
  const bool all =
      std::ranges::all_of(addresses, [&](const void* address) { return s.find(address, 1) != nullptr; });
  if (!all) s.mistake(std::string(what) + " whose memory is freed");
  return all;
}

cudaError_t add_work(cudaStream_t stream, Work work) {
  State& s = state();
  if (!s.streams.contains(stream)) {
    s.mistake("work for a stream that does not exist");
    return failed(cudaErrorInvalidResourceHandle);
  }
  if (stream->capture != nullptr) {
    if (stream->capture_is_invalid) return failed(cudaErrorStreamCaptureInvalidated);
    stream->capture->work.push_back(std::move(work));
    return cudaSuccess;
  }
  stream->queue.push_back(std::move(work));
  ++stream->added;
  if (RandomStream* const random = chance()) {
    if (random->below(kWorkPerSwitch) == 0) stream->eager = !stream->eager;
    if (stream->eager) run_until(stream, stream->added);
  }
  if (stream->queue.size() >= kLongestQueue) run_until(stream, stream->added);
  return cudaSuccess;
}

}  // namespace sweep::cuda::cudart

using sweep::cuda::cudart::last_error;

cudaError_t cudaGetLastError() {
  const cudaError_t error = std::exchange(last_error, cudaSuccess);
  const cudaError_t sticky = sweep::cuda::cudart::state().sticky;
  return sticky != cudaSuccess ? sticky : error;
}
