// runtime.h on the CUDA runtime API.
#include "core/kernels/cuda/runtime/runtime.h"

#include <cuda_runtime_api.h>

#include <iomanip>
#include <map>
#include <mutex>
#include <sstream>
#include <utility>

#include "core/base/error.h"

namespace sweep::cuda {
namespace {

std::string current_device_name() {
  int index = 0;
  if (cudaGetDevice(&index) != cudaSuccess) return "cuda";
  return index == 0 ? "cuda" : "cuda:" + std::to_string(index);
}

// These errors destroy the context: every later CUDA call of the process fails with the same error.
bool is_sticky(cudaError_t error) {
  switch (error) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorHardwareStackError:
    case cudaErrorAssert:
    case cudaErrorECCUncorrectable:
    case cudaErrorUnknown:
      return true;
    default:
      break;
  }
  // cudaErrorContained, cudaErrorTensorMemoryLeak and cudaErrorMpsClientTerminated, which older toolkits do
  // not name.
  const int number = error;
  return number == 226 || number == 721 || number == 810;
}

void check(cudaError_t error, const char* doing) {
  if (error == cudaSuccess) return;
  cudaGetLastError();  // clears the error, or the next call would report it again
  std::string message = current_device_name() + ": error while " + doing + ": " + cudaGetErrorString(error) +
                        " (" + cudaGetErrorName(error) + ")";
  if (is_sticky(error)) message += "; this process cannot use the device any more, start it again";
  throw DeviceError(message);
}

std::string mebibytes(std::size_t bytes) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(1) << static_cast<double>(bytes) / (1 << 20) << " MiB";
  return text.str();
}

// The kernels that this process has loaded, which all engines share. Thread-safe.
class LoadedKernels {
 public:
  // Loads `kernel` on `device`, the current one, if this is its first launch, and allows it `shared_bytes`.
  // A graph's kernels are checked against the limit whenever it is launched, so the limit never goes down: a
  // second engine with a smaller network would break the graphs of the first.
  void prepare(int device, const void* kernel, std::size_t shared_bytes) {
    const std::scoped_lock lock(mutex_);
    const auto found = shared_bytes_.find({device, kernel});
    std::size_t allowed = found != shared_bytes_.end() ? found->second : load(kernel);
    if (shared_bytes > allowed) {
      check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 static_cast<int>(shared_bytes)),
            "asking for shared memory");
      allowed = shared_bytes;
    }
    shared_bytes_[{device, kernel}] = allowed;
  }

 private:
  // Returns the bytes of dynamic shared memory that every kernel may have. All kernels have the same split
  // between shared memory and L1 cache, so no multiprocessor has to change it between two kernels.
  static std::size_t load(const void* kernel) {
    cudaFuncAttributes attributes{};
    check(cudaFuncGetAttributes(&attributes, kernel), "loading a kernel");
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                               cudaSharedmemCarveoutMaxShared),
          "dividing a multiprocessor's memory");
    return std::size_t{48} << 10;
  }

  std::mutex mutex_;
  std::map<std::pair<int, const void*>, std::size_t> shared_bytes_;  // that each may have, on a device
};

int current_device() {
  int device = 0;
  check(cudaGetDevice(&device), "asking for the device");
  return device;
}

}  // namespace

void use_device(int index) { check(cudaSetDevice(index), "choosing the device"); }

void reach_device(int index) {
  const int device = current_device();
  if (device == index) return;
  int possible = 0;
  check(cudaDeviceCanAccessPeer(&possible, device, index), "asking whether devices reach each other");
  if (possible == 0) return;
  const cudaError_t error = cudaDeviceEnablePeerAccess(index, 0);
  if (is_sticky(error)) check(error, "connecting devices");
  cudaGetLastError();  // clears the others: copies work without it
}

std::size_t free_memory() {
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "asking for free memory");
  return free;
}

void Free::operator()(CUevent_st* event) const { cudaEventDestroy(event); }
void Free::operator()(CUgraphExec_st* graph) const { cudaGraphExecDestroy(graph); }
void Free::operator()(CUstream_st* stream) const {
  cudaStreamSynchronize(stream);
  cudaStreamDestroy(stream);
}
void FreeDevice::operator()(std::byte* memory) const { cudaFree(memory); }
void FreePinned::operator()(std::byte* memory) const { cudaFreeHost(memory); }

Memory::Memory(std::size_t bytes, const std::string& purpose) {
  bytes_ = bytes;
  if (bytes == 0) return;
  void* pointer = nullptr;
  const cudaError_t error = cudaMalloc(&pointer, bytes);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    std::size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "asking for free memory");
    throw DeviceError(current_device_name() + ": out of memory: " + mebibytes(bytes) + " asked for " +
                      purpose + ", but " + mebibytes(free) + " of " + mebibytes(total) +
                      " are free; try a smaller batch_size or network");
  }
  check(error, "allocating memory");
  data_.reset(static_cast<std::byte*>(pointer));
}

PinnedMemory::PinnedMemory(std::size_t bytes) {
  bytes_ = bytes;
  if (bytes == 0) return;
  void* pointer = nullptr;
  const cudaError_t error = cudaMallocHost(&pointer, bytes);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw DeviceError(
        current_device_name() + ": this machine cannot lock " + mebibytes(bytes) +
        " of its memory for copies to the device, though it may be free; try a smaller batch_size");
  }
  check(error, "allocating pinned memory");
  data_.reset(static_cast<std::byte*>(pointer));
}

Event::Event(Kind kind) {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, kind == Kind::kTime ? cudaEventDefault : cudaEventDisableTiming),
        "making an event");
  event_.reset(event);
}

void Event::wait() const { check(cudaEventSynchronize(native()), "waiting for an event"); }

double Event::seconds_since(const Event& begin) const {
  wait();
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, begin.native(), native()), "reading the time between events");
  return static_cast<double>(milliseconds) / 1e3;
}

Stream::Stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream");
  stream_.reset(stream);
}

void Stream::upload(void* device, const void* host, std::size_t bytes) {
  if (bytes == 0) return;
  // The driver stages small copies from pageable memory before it returns, but does not promise it for large
  // ones. The wait makes sure that the caller may change `host`.
  check(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, native()), "copying to the device");
  wait();
}

void Stream::upload_pinned(void* device, const std::byte* pinned, std::size_t bytes) {
  if (bytes == 0) return;
  check(cudaMemcpyAsync(device, pinned, bytes, cudaMemcpyHostToDevice, native()), "copying to the device");
}

void Stream::download(void* host, const void* device, std::size_t bytes) {
  if (bytes == 0) return;
  check(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, native()), "copying from the device");
  wait();
}

void Stream::clear(void* device, std::size_t bytes) {
  if (bytes == 0) return;
  check(cudaMemsetAsync(device, 0, bytes, native()), "clearing memory");
}

void Stream::copy(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, native()), "copying on the device");
}

void Stream::copy_between(void* to, int to_device, const void* from, int from_device, std::size_t bytes) {
  if (bytes == 0) return;
  check(cudaMemcpyPeerAsync(to, to_device, from, from_device, bytes, native()), "copying between devices");
}

void Stream::wait() { check(cudaStreamSynchronize(native()), "waiting for the device"); }

void Stream::record(const Event& event) {
  check(cudaEventRecord(event.native(), native()), "recording an event");
}

void Stream::wait_for(const Event& event) {
  check(cudaStreamWaitEvent(native(), event.native(), 0), "waiting for an event");
}

Graph Stream::capture(const std::function<void()>& work) {
  // Relaxed, because a kernel may be used for the first time here: loading its module to the device is a call
  // that the stricter modes forbid during a capture.
  check(cudaStreamBeginCapture(native(), cudaStreamCaptureModeRelaxed), "starting a graph");
  std::unique_ptr<CUgraph_st, cudaError_t (*)(CUgraph_st*)> graph(nullptr, cudaGraphDestroy);
  const auto end = [&] {
    cudaGraph_t captured = nullptr;
    const cudaError_t error = cudaStreamEndCapture(native(), &captured);
    graph.reset(captured);
    return error;
  };
  try {
    work();
  } catch (...) {
    end();
    throw;
  }
  check(end(), "recording a graph");
  cudaGraphExec_t executable = nullptr;
  check(cudaGraphInstantiate(&executable, graph.get(), 0), "making a graph");
  Graph made(executable);
  // Uploaded now, so that the first launch does not pay for it.
  check(cudaGraphUpload(executable, native()), "copying a graph to the device");
  return made;
}

void Stream::launch(const Graph& graph) { check(cudaGraphLaunch(graph.get(), native()), "starting a graph"); }

void start_kernel(Stream& stream, const void* kernel, Extent grid, Extent block, std::size_t shared_bytes,
                  void** arguments) {
  static LoadedKernels loaded;
  loaded.prepare(current_device(), kernel, shared_bytes);
  check(cudaLaunchKernel(kernel, dim3(grid.x, grid.y, grid.z), dim3(block.x, block.y, block.z), arguments,
                         shared_bytes, stream.native()),
        "starting a kernel");
}

std::size_t shared_bytes_limit() {
  int bytes = 0;
  check(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, current_device()),
        "asking for the size of shared memory");
  return static_cast<std::size_t>(bytes);
}

}  // namespace sweep::cuda
