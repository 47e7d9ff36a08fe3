// Devices, errors and memory.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>

#include "tests/cudart/state.h"

using namespace sweep::cuda::cudart;  // NOLINT(google-build-using-namespace): this file is part of it

namespace {

// The numbers in CUDA_VISIBLE_DEVICES up to the first that is none, as CUDA reads them; all without it.
std::vector<int> read_visible_devices() {
  std::vector<int> visible;
  const char* variable = std::getenv("CUDA_VISIBLE_DEVICES");
  if (variable == nullptr) {
    for (int i = 0; i < kDevices; ++i) visible.push_back(i);
    return visible;
  }
  for (std::string_view text = variable; !text.empty();) {
    int number = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || number < 0 || number >= kDevices) break;
    visible.push_back(number);
    text.remove_prefix(std::min(text.size(), static_cast<std::size_t>(end - text.data()) + 1));
  }
  return visible;
}

const std::vector<int>& visible_devices() {
  static const std::vector<int> visible = read_visible_devices();
  return visible;
}

}  // namespace

int State::devices() const { return std::min(machine.devices, static_cast<int>(visible_devices().size())); }

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
#define SWEEP_NAME(name) \
  case name:             \
    return #name;
    SWEEP_NAME(cudaErrorInvalidValue)
    SWEEP_NAME(cudaErrorMemoryAllocation)
    SWEEP_NAME(cudaErrorInvalidDevice)
    SWEEP_NAME(cudaErrorInvalidResourceHandle)
    SWEEP_NAME(cudaErrorInvalidConfiguration)
    SWEEP_NAME(cudaErrorIllegalAddress)
    SWEEP_NAME(cudaErrorLaunchFailure)
    SWEEP_NAME(cudaErrorNotReady)
    SWEEP_NAME(cudaErrorNoKernelImageForDevice)
    SWEEP_NAME(cudaErrorStreamCaptureUnsupported)
    SWEEP_NAME(cudaErrorStreamCaptureInvalidated)
    SWEEP_NAME(cudaErrorStreamCaptureIsolation)
    SWEEP_NAME(cudaErrorSystemDriverMismatch)
    SWEEP_NAME(cudaErrorOperatingSystem)
    SWEEP_NAME(cudaErrorUnknown)
#undef SWEEP_NAME
    default:
      return "cudaError";
  }
}

const char* cudaGetErrorString(cudaError_t error) {
  thread_local char text[64];
  std::snprintf(text, sizeof text, "text of error %d", static_cast<int>(error));
  return text;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = state().machine.driver.value_or(CUDART_VERSION);
  return begin_call("cudaDriverGetVersion");
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 0;
  SWEEP_BEGIN_CALL(s);
  if (s.machine.driver.value_or(CUDART_VERSION) < CUDART_VERSION / 1000 * 1000)
    return failed(cudaErrorInsufficientDriver);
  if (s.devices() == 0) return failed(cudaErrorNoDevice);
  *count = s.devices();
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  SWEEP_BEGIN_CALL(s);
  if (device < 0 || device >= s.devices()) return failed(cudaErrorInvalidDevice);
  *properties = {};
  // A test may have devices of several models.
  const char* model = std::getenv("SWEEP_CUDA_HOST_MODEL");
  std::snprintf(properties->name, sizeof properties->name, "%s",
                model != nullptr ? model : "CUDA stand-in on the host, for tests");
  properties->totalGlobalMem = s.machine.memory_bytes;
  properties->multiProcessorCount = s.machine.multiprocessors;
  properties->major = 9;
  properties->uuid.bytes[15] = static_cast<char>(visible_devices()[static_cast<std::size_t>(device)] + 1);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  SWEEP_BEGIN_CALL(s);
  if (device < 0 || device >= s.devices()) return failed(cudaErrorInvalidDevice);
  if (attribute != cudaDevAttrMaxSharedMemoryPerBlockOptin) return failed(cudaErrorInvalidValue);
  *value = static_cast<int>(s.machine.shared_bytes);
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  SWEEP_BEGIN_CALL(s);
  *device = current_device();
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  SWEEP_BEGIN_CALL(s);
  if (device < 0 || device >= s.devices()) return failed(cudaErrorInvalidDevice);
  current_device() = device;
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  SWEEP_BEGIN_CALL(s);
  *total = s.machine.memory_bytes;
  *free = std::min(*total - s.used(current_device()), s.left());
  return cudaSuccess;
}

namespace {

// Allocates on a device, or pinned memory on kHost.
cudaError_t allocate(void** pointer, std::size_t bytes, int device) {
  State& s = state();
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  if (captures())
    return failed(cudaErrorStreamCaptureUnsupported);  // CUDA may do it, the engine never wants to
  require_no_exchange("memory is allocated", true);
  if (device != kHost && bytes > std::min(s.machine.memory_bytes - s.used(device), s.left()))
    return failed(cudaErrorMemoryAllocation);
  constexpr std::size_t kAlignment = 256;
  const auto take = [&] {
    if (posix_memalign(pointer, kAlignment, bytes) != 0) throw std::bad_alloc();
  };
  // An address with a small lower half would look like two numbers of a kernel next to each other, or like
  // one next to padding, which GCC 12 does not find after an array.
  constexpr std::uint64_t kLeastLowerHalf = 1 << 20, kLowerHalves = std::uint64_t{1} << 32;
  const auto has_small_lower_half = [&] {
    const std::uint64_t lower = reinterpret_cast<std::uintptr_t>(*pointer) % kLowerHalves;
    const bool fits = bytes <= kLowerHalves - kLeastLowerHalf - kAlignment;
    return lower < kLeastLowerHalf || (fits && lower + bytes > kLowerHalves);
  };
  for (take(); has_small_lower_half(); take()) s.unused.emplace_back(static_cast<std::byte*>(*pointer));
  std::memset(*pointer, 0xFF, bytes);
  auto* const begin = static_cast<std::byte*>(*pointer);
  s.allocations.emplace(begin, Allocation{std::unique_ptr<std::byte, FreeMemory>(begin), bytes, device});
  return cudaSuccess;
}

// Frees what was allocated on a device, `of_device`, or pinned. Waits for the device first, or for all; not
// for another one's copies from this.
cudaError_t release(void* pointer, bool of_device) {
  State& s = state();
  if (pointer == nullptr) return cudaSuccess;
  const auto found = s.allocations.find(static_cast<const std::byte*>(pointer));
  if (found == s.allocations.end() || (found->second.device == kHost) == of_device) {
    s.mistake("memory is freed that was not allocated, or is freed already");
    return failed(cudaErrorInvalidValue);
  }
  for (int device = 0; device < s.devices(); ++device) {
    if (of_device && device != found->second.device) continue;
    if (const cudaError_t error = run_all_streams(device)) return error;
  }
  s.allocations.erase(found);
  return cudaSuccess;
}

cudaError_t add_copy(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
  std::vector<const void*> allocated;  // not pageable
  for (const void* address : {static_cast<const void*>(to), from}) {
    if (state().find(address, bytes) != nullptr) allocated.push_back(address);
  }
  return add_work(stream, {[=] {
                    if (is_there(allocated, "a copy")) std::memcpy(to, from, bytes);
                  }});
}

}  // namespace

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
  SWEEP_BEGIN_CALL(s);
  return allocate(pointer, bytes, current_device());
}

cudaError_t cudaMallocHost(void** pointer, std::size_t bytes) {
  SWEEP_BEGIN_CALL(s);
  return allocate(pointer, bytes, kHost);
}

cudaError_t cudaFree(void* pointer) {
  SWEEP_BEGIN_CALL(s);
  return release(pointer, true);
}

cudaError_t cudaFreeHost(void* pointer) {
  SWEEP_BEGIN_CALL(s);
  return release(pointer, false);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  SWEEP_BEGIN_CALL(s);
  const auto is_on_device = [](const Allocation* allocation) {
    return allocation != nullptr && allocation->device != kHost;
  };
  const Allocation *target = s.find(to, bytes), *source = s.find(from, bytes);
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice,
             from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (is_on_device(target) != to_device || is_on_device(source) != from_device) {
    s.mistake("a copy of another kind than its addresses, or beyond an allocation");
    return failed(cudaErrorInvalidValue);
  }
  const bool is_pageable = (!to_device && target == nullptr) || (!from_device && source == nullptr);
  if (is_pageable && s.streams.contains(stream) && stream->capture != nullptr) {
    stream->capture_is_invalid = true;
    return failed(cudaErrorStreamCaptureUnsupported);
  }
  return add_copy(to, from, bytes, stream);
}

cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
  SWEEP_BEGIN_CALL(s);
  const Allocation* const target = s.find(memory, bytes);
  if (target == nullptr || target->device == kHost) {
    s.mistake("memory is set that is not a device's, or beyond an allocation");
    return failed(cudaErrorInvalidValue);
  }
  return add_work(stream, {[=] {
                    if (is_there({memory}, "a memset")) std::memset(memory, value, bytes);
                  }});
}

cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, std::size_t bytes,
                                cudaStream_t stream) {
  SWEEP_BEGIN_CALL(s);
  const Allocation *target = s.find(to, bytes), *source = s.find(from, bytes);
  if (target == nullptr || target->device != to_device || source == nullptr ||
      source->device != from_device) {
    s.mistake("a copy between other devices than those of its addresses, or beyond an allocation");
    return failed(cudaErrorInvalidValue);
  }
  return add_copy(to, from, bytes, stream);
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  SWEEP_BEGIN_CALL(s);
  const int devices = s.devices();
  if (device < 0 || device >= devices || peer < 0 || peer >= devices) return failed(cudaErrorInvalidDevice);
  *can = s.machine.has_peer_access && device != peer ? 1 : 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  SWEEP_BEGIN_CALL(s);
  if (!s.machine.has_peer_access || peer == current_device()) return failed(cudaErrorPeerAccessUnsupported);
  if (!s.peers.insert({current_device(), peer}).second) return failed(cudaErrorPeerAccessAlreadyEnabled);
  return cudaSuccess;
}
