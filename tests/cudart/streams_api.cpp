// Streams, events, graphs and kernels.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <span>

#include "core/kernels/cuda/runtime/runtime.h"
#include "tests/cudart/grid.h"
#include "tests/cudart/state.h"

using namespace sweep::cuda::cudart;  // NOLINT(google-build-using-namespace): this file is part of it

namespace {

// Waiting for a stream that captures ends the capture.
cudaError_t require_waitable(cudaStream_t stream) {
  if (!state().streams.contains(stream)) {
    state().mistake("waiting for a stream that does not exist");
    return failed(cudaErrorInvalidResourceHandle);
  }
  if (stream->capture == nullptr) return cudaSuccess;
  stream->capture_is_invalid = true;
  return failed(cudaErrorStreamCaptureUnsupported);
}

bool is_alive(cudaEvent_t event) {
  if (state().events.contains(event)) return true;
  state().mistake("use of an event that does not exist");
  return false;
}

// Destroys one of `all`, even if the call has to fail. `error`: if there is no such object.
template <class Object>
cudaError_t destroy(const char* function, std::set<Object*>& all, Object* object, cudaError_t error) {
  const std::scoped_lock lock(state().mutex);
  const cudaError_t asked_for = begin_call(function);
  if (all.erase(object) == 0) {
    state().mistake(std::string(function) + " of what does not exist");
    return failed(error);
  }
  delete object;
  return asked_for;
}

// What a kernel is given of allocated memory. A number next to padding is no address, even if the padding has
// a half of one.
std::vector<const void*> addresses_among(const KernelType& type, void** arguments) {
  std::vector<const void*> addresses;
  for (std::size_t i = 0; i < type.parameters.size(); ++i) {
    const std::vector<std::byte>& bytes = type.parameters[i];
    for (std::size_t at = 0; at + sizeof(void*) <= bytes.size(); at += sizeof(void*)) {
      if (std::ranges::count(std::span(bytes).subspan(at, sizeof(void*)), std::byte{0}) > 0) continue;
      const void* word = nullptr;
      std::memcpy(&word, static_cast<const std::byte*>(arguments[i]) + at, sizeof word);
      if (state().find(word, 1) != nullptr) addresses.push_back(word);
    }
  }
  return addresses;
}

// Whether the current device has all of that memory: this program's kernels use no other.
bool is_own(const std::vector<const void*>& addresses) {
  return std::ranges::all_of(
      addresses, [](const void* address) { return state().find(address, 1)->device == current_device(); });
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  SWEEP_BEGIN_CALL(s);
  *stream = new CUstream_st(current_device());
  s.streams.insert(*stream);
  return cudaSuccess;
}

// Its work is done nevertheless.
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  const cudaError_t error = begin_call("cudaStreamDestroy");
  if (!s.streams.contains(stream)) {
    s.mistake("a stream is destroyed that does not exist");
    return failed(cudaErrorInvalidResourceHandle);
  }
  run_until(stream, stream->added);
  s.streams.erase(stream);
  for (const cudaEvent_t event : s.events) {
    if (event->stream == stream) event->stream = nullptr;
  }
  delete stream;
  return error;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const std::scoped_lock lock(state().mutex);
  const cudaError_t asked_for = begin_call("cudaStreamSynchronize");
  if (const cudaError_t error = require_waitable(stream)) return error;
  const cudaError_t error = run_until(stream, stream->added);
  return asked_for != cudaSuccess ? asked_for : error;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  SWEEP_BEGIN_CALL(s);
  if (!is_alive(event)) return failed(cudaErrorInvalidResourceHandle);
  if (s.streams.contains(stream) && stream->capture != nullptr && !event->captured) {
    stream->capture_is_invalid = true;
    return failed(cudaErrorStreamCaptureIsolation);
  }
  if (event->stream == nullptr || event->stream == stream) return cudaSuccess;
  return add_work(stream, {[other = event->stream, position = event->position] {
                    if (state().streams.contains(other)) run_until(other, position);
                  }});
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  SWEEP_BEGIN_CALL(s);
  *event = new CUevent_st(current_device(), (flags & cudaEventDisableTiming) == 0);
  s.events.insert(*event);
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return destroy(__func__, state().events, event, cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  SWEEP_BEGIN_CALL(s);
  if (!is_alive(event) || !s.streams.contains(stream) || event->device != stream->device)
    return failed(cudaErrorInvalidResourceHandle);
  event->stream = stream;
  event->captured = stream->capture != nullptr;
  auto seconds = std::make_shared<double>(-1);
  event->seconds = seconds;
  const cudaError_t error = add_work(stream, {[seconds] { *seconds = now(); }});
  event->position = stream->added;
  return error;
}

// Only as a node of a graph, which sets the event's time whenever it is launched.
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  SWEEP_BEGIN_CALL(s);
  if (!is_alive(event) || !s.streams.contains(stream) || event->device != stream->device)
    return failed(cudaErrorInvalidResourceHandle);
  if (flags != cudaEventRecordExternal || stream->capture == nullptr) return failed(cudaErrorInvalidValue);
  event->stream = stream;
  return add_work(stream, {[seconds = event->seconds] { *seconds = now(); }});
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const std::scoped_lock lock(state().mutex);
  const cudaError_t asked_for = begin_call("cudaEventSynchronize");
  if (!is_alive(event)) return failed(cudaErrorInvalidResourceHandle);
  if (event->captured) return failed(cudaErrorCapturedEvent);
  const cudaError_t error =
      event->stream == nullptr ? cudaSuccess : run_until(event->stream, event->position);
  return asked_for != cudaSuccess ? asked_for : error;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  SWEEP_BEGIN_CALL(s);
  if (!is_alive(begin) || !is_alive(end) || !begin->has_time || !end->has_time ||
      begin->device != end->device || begin->stream == nullptr || end->stream == nullptr)
    return failed(cudaErrorInvalidResourceHandle);
  if (*begin->seconds < 0 || *end->seconds < 0) return failed(cudaErrorNotReady);
  *milliseconds = static_cast<float>(1e3 * (*end->seconds - *begin->seconds));
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  SWEEP_BEGIN_CALL(s);
  if (!s.streams.contains(stream)) return failed(cudaErrorInvalidResourceHandle);
  if (stream->capture != nullptr) return failed(cudaErrorIllegalState);
  captures() = true;
  stream->capture = new CUgraph_st;
  stream->capture_is_invalid = false;
  s.graphs.insert(stream->capture);
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  SWEEP_BEGIN_CALL(s);
  if (!s.streams.contains(stream)) return failed(cudaErrorInvalidResourceHandle);
  *status = stream->capture != nullptr ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  *graph = nullptr;
  const cudaError_t error = begin_call("cudaStreamEndCapture");
  if (!s.streams.contains(stream) || stream->capture == nullptr) return failed(cudaErrorIllegalState);
  const cudaGraph_t captured = std::exchange(stream->capture, nullptr);
  captures() = false;
  if (error == cudaSuccess && !stream->capture_is_invalid) {
    *graph = captured;
    return cudaSuccess;
  }
  s.graphs.erase(captured);
  delete captured;
  return error != cudaSuccess ? error : failed(cudaErrorStreamCaptureInvalidated);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  SWEEP_BEGIN_CALL(s);
  if (!s.graphs.contains(graph)) return failed(cudaErrorInvalidValue);
  *executable = new CUgraphExec_st{graph->work};
  s.executables.insert(*executable);
  return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t stream) {
  SWEEP_BEGIN_CALL(s);
  if (!s.executables.contains(executable) || !s.streams.contains(stream))
    return failed(cudaErrorInvalidValue);
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  SWEEP_BEGIN_CALL(s);
  if (!s.executables.contains(executable)) {
    s.mistake("a graph is launched that does not exist");
    return failed(cudaErrorInvalidValue);
  }
  for (const Work& work : executable->work) {
    if (const cudaError_t error = add_work(stream, work)) return error;
  }
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return destroy(__func__, state().graphs, graph, cudaErrorInvalidValue);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  return destroy(__func__, state().executables, executable, cudaErrorInvalidValue);
}

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  SWEEP_BEGIN_CALL(s);
  if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout && value >= -1 && value <= 100)
    return cudaSuccess;
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
      static_cast<std::size_t>(value) > s.machine.shared_bytes)
    return failed(cudaErrorInvalidValue);
  s.shared_limits[{current_device(), function}] = static_cast<std::size_t>(value);
  return cudaSuccess;
}

// Loads the kernel.
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes*, const void*) {
  SWEEP_BEGIN_CALL(s);
  require_no_exchange("a kernel is loaded");
  return cudaSuccess;
}

// The name of its type, which does not tell kernels apart that are no functors.
cudaError_t cudaFuncGetName(const char** name, const void* function) {
  SWEEP_BEGIN_CALL(s);
  *name = type_of(function).name;
  return cudaSuccess;
}

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                             std::size_t shared_bytes, cudaStream_t stream) {
  SWEEP_BEGIN_CALL(s);
  if (!s.streams.contains(stream) || stream->device != current_device())
    return failed(cudaErrorInvalidResourceHandle);
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || block.x == 0 || block.x * block.y * block.z > 1024)
    return failed(cudaErrorInvalidConfiguration);
  const auto limit = s.shared_limits.find({current_device(), function});
  if (shared_bytes > (limit != s.shared_limits.end() ? limit->second : std::size_t{48} << 10) ||
      shared_bytes > s.machine.shared_bytes)
    return failed(cudaErrorInvalidValue);
  const std::vector<const void*> addresses = addresses_among(type_of(function), arguments);
  if (!is_own(addresses)) {
    s.mistake("a kernel gets memory that is not its device's");
    return failed(cudaErrorInvalidValue);
  }
  const auto run =
      launch_of(function, {grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, shared_bytes, arguments);
  return add_work(stream, {[=] {
                             if (is_there(addresses, "a kernel")) run();
                           },
                           true});
}

// What the other parts of the stand-in ask for.
namespace sweep::cuda {

bool Stream::is_capturing() const {
  const std::scoped_lock lock(state().mutex);
  return native()->capture != nullptr;
}

void Stream::enqueue(std::function<void()> work) {
  const std::scoped_lock lock(state().mutex);
  add_work(native(), {std::move(work)});
}

}  // namespace sweep::cuda
