// Memory, streams and graphs of one CUDA device: everything that the engine uses of the CUDA runtime.
// Tests on machines without a GPU link it with a CUDA runtime over host memory, tests/cudart.
//
// Every function throws DeviceError if CUDA reports an error; the message names the device and the operation.
// A failing kernel reports late, from whichever call waits next. After some errors the process cannot use the
// device any more, and the message says so.
//
// Thread-safety: one thread at a time per object. CUDA's current device belongs to the thread, so a thread
// calls use_device() before it makes or uses objects of that device.
#pragma once

#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

// CUDA's own types, of which kernels see no more.
struct CUevent_st;
struct CUgraphExec_st;
struct CUstream_st;

namespace sweep::cuda {

/// Makes CUDA device `index` the calling thread's current device. Cheap.
void use_device(int index);

/// Lets the current device copy from the memory of device `index` without a detour through the host's, if the
/// machine can. Copies also work without it. Cheap after the first time.
void reach_device(int index);

/// Free bytes on the current device.
std::size_t free_memory();

/// Gives back what CUDA has made.
struct Free {
  void operator()(CUevent_st* event) const;
  void operator()(CUgraphExec_st* graph) const;
  void operator()(CUstream_st* stream) const;  // after its work is done
};
struct FreeDevice {
  void operator()(std::byte* memory) const;
};
struct FreePinned {
  void operator()(std::byte* memory) const;
};

/// Memory that Free frees. Move-only.
template <class Free>
class OwnedBytes {
 public:
  std::byte* data() const { return data_.get(); }
  std::size_t bytes() const { return data_ == nullptr ? 0 : bytes_; }

 protected:
  std::unique_ptr<std::byte, Free> data_;
  std::size_t bytes_ = 0;
};

/// Memory of the current device, not initialised. Move-only; freed with the object. cudaFree waits for the
/// device, so work that still uses the memory is safe.
class Memory : public OwnedBytes<FreeDevice> {
 public:
  Memory() = default;
  /// `purpose` is for the error message if there is too little: "activations of a batch of 1000".
  Memory(std::size_t bytes, const std::string& purpose);
};

/// `count` elements of device memory, not initialised. The host must not dereference data().
template <class T>
class Array {
 public:
  Array() = default;
  Array(std::size_t count, const std::string& purpose) : memory_(count * sizeof(T), purpose) {}
  T* data() const { return reinterpret_cast<T*>(memory_.data()); }
  std::size_t size() const { return memory_.bytes() / sizeof(T); }

 private:
  Memory memory_;
};

/// Page-locked host memory: the device copies from it by itself, while the host goes on. Move-only.
class PinnedMemory : public OwnedBytes<FreePinned> {
 public:
  PinnedMemory() = default;
  explicit PinnedMemory(std::size_t bytes);
};

/// Work that Stream::capture() has recorded. One call puts all of it on a stream, which spares the launch of
/// each kernel. Move-only.
using Graph = std::unique_ptr<CUgraphExec_st, Free>;

/// A position in a stream's work. Move-only.
class Event {
 public:
  enum class Kind { kOrder, kTime };
  /// kOrder: for waiting. kTime: also keeps when the device reached it, which costs the device some time.
  explicit Event(Kind kind = Kind::kOrder);
  /// A cudaEvent_t.
  CUevent_st* native() const { return event_.get(); }
  /// Returns when the work before the last Stream::record() of this event is done; at once if it was never
  /// recorded.
  void wait() const;
  /// Seconds of device time between `begin` and this event; waits for both. Both are kTime and have been
  /// recorded.
  double seconds_since(const Event& begin) const;

 private:
  std::unique_ptr<CUevent_st, Free> event_;
};

/// A queue of work that the device does in order. Calls return before the work is done unless they say
/// otherwise.
class Stream {
 public:
  Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  /// A cudaStream_t.
  CUstream_st* native() const { return stream_.get(); }

  /// Copies `bytes` from host memory and waits, so the caller may change `host` afterwards.
  void upload(void* device, const void* host, std::size_t bytes);
  /// Copies from pinned memory without waiting. The caller must not change `pinned` before the copy is done;
  /// an event recorded after it tells.
  void upload_pinned(void* device, const std::byte* pinned, std::size_t bytes);
  /// Copies to host memory and waits.
  void download(void* host, const void* device, std::size_t bytes);
  /// Sets `bytes` of device memory to zero.
  void clear(void* device, std::size_t bytes);
  /// Copies within the device. The ranges must not overlap.
  void copy(void* to, const void* from, std::size_t bytes);
  /// Copies to this stream's device `to_device` from memory of device `from_device`, which may be the same.
  /// If another stream writes `from`, its caller orders this copy with events.
  void copy_between(void* to, int to_device, const void* from, int from_device, std::size_t bytes);

  /// Returns when all work on the stream is done.
  void wait();
  /// Lets `event` stand for the work that is on the stream now.
  void record(const Event& event);
  /// Later work of this stream starts after the work that `event` stands for, on whichever stream that is.
  /// Does not wait itself.
  void wait_for(const Event& event);

  /// Records the work that `work` puts on this stream instead of doing it. Pointers and sizes are frozen in
  /// the graph, so the memory has to outlive it, and whatever varies between launches has to lie in device
  /// memory (see StepInput). `work` must not wait, upload(), download(), record(), wait_for() or allocate.
  Graph capture(const std::function<void()>& work);
  void launch(const Graph& graph);

#if !defined(__CUDACC__)
  /// In tests on the host only: puts a function into the queue.
  void enqueue(std::function<void()> work);
  /// In tests on the host only: whether work is recorded instead of done.
  bool is_capturing() const;
#endif

 private:
  std::unique_ptr<CUstream_st, Free> stream_;
};

/// A new device array with a copy of `values`, any contiguous range. `purpose` as in Memory. Waits for the
/// copy.
template <class Range>
auto to_device(Stream& stream, const Range& values, const std::string& purpose) {
  using T = std::remove_cvref_t<decltype(*std::data(values))>;
  Array<T> array(std::size(values), purpose);
  stream.upload(array.data(), std::data(values), std::size(values) * sizeof(T));
  return array;
}

/// A copy of `count` elements of device memory, once the stream's work so far is done. Waits.
template <class T>
std::vector<T> to_host(Stream& stream, const T* device, std::size_t count) {
  std::vector<T> values(count);
  stream.download(values.data(), device, count * sizeof(T));
  return values;
}

/// Blocks or threads along x, y and z.
struct Extent {
  unsigned x = 1, y = 1, z = 1;
};

/// Puts one kernel on the stream; for launch(). `arguments` points to the kernel's arguments, in order, which
/// are copied.
void start_kernel(Stream& stream, const void* kernel, Extent grid, Extent block, std::size_t shared_bytes,
                  void** arguments);

/// Largest shared memory of a block on the current device, in bytes.
std::size_t shared_bytes_limit();

}  // namespace sweep::cuda
