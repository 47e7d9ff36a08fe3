// Memory, streams and graphs of one CUDA device: all that the engine knows of the CUDA runtime. Implemented
// with it in runtime.cpp, and in host/ with the host's memory, for tests on machines without a GPU.
//
// Every function throws DeviceError, naming the device and what was being done, if CUDA reports an error.
// Errors of kernels come late, from whichever call waits next; after some of them the process cannot use the
// device again, and the message says so.
#pragma once

#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace sweep::cuda {

/// Makes CUDA device `index` the one that this thread's next calls are about. Cheap.
void use_device(int index);

/// Bytes that nobody has taken yet on the device that use_device() chose.
std::size_t free_memory();

/// Bytes on the device that use_device() chose. Move-only; freed with the object.
class Memory {
 public:
  Memory() = default;
  /// `purpose` is for the message if there is not enough: "activations of a batch of 1000".
  Memory(std::size_t bytes, const std::string& purpose);
  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&& other) noexcept;
  ~Memory();

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// `count` elements on the device, not initialised. Not for the host to look at.
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

/// Host memory that the device reads without the processor's help. Move-only.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  explicit PinnedMemory(std::size_t bytes);
  PinnedMemory(PinnedMemory&& other) noexcept;
  PinnedMemory& operator=(PinnedMemory&& other) noexcept;
  ~PinnedMemory();

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Work that was recorded once and can be put on a stream whole, in one call. Move-only.
class Graph {
 public:
  struct Implementation;
  Graph();
  explicit Graph(std::unique_ptr<Implementation> implementation);
  Graph(Graph&&) noexcept;
  Graph& operator=(Graph&&) noexcept;
  ~Graph();
  Implementation& implementation() const { return *implementation_; }
  /// Kernels, copies and fills in it.
  std::size_t size() const;

 private:
  std::unique_ptr<Implementation> implementation_;
};

/// A mark in a stream's work. Move-only.
class Event {
 public:
  struct Implementation;
  enum class Kind { kOrder, kTime };
  /// Of kTime, it also keeps when the device came to it, which costs the device some time.
  explicit Event(Kind kind = Kind::kOrder);
  Event(Event&&) noexcept;
  Event& operator=(Event&&) noexcept;
  ~Event();
  Implementation& implementation() const { return *implementation_; }
  /// Returns when the work before the last Stream::record() of this event is done; at once if there was none.
  void wait() const;
  /// Seconds from when the device came to `begin` to when it came to this event; waits for it. Both are of
  /// kTime and were recorded.
  double seconds_since(const Event& begin) const;

 private:
  std::unique_ptr<Implementation> implementation_;
};

/// A queue of work for the device, done in order. Calls return before the work is done unless they say
/// otherwise.
class Stream {
 public:
  struct Implementation;
  Stream();
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  Implementation& implementation() const { return *implementation_; }

  /// Copies `bytes` from host memory, which may be changed once this returns.
  void upload(void* device, const void* host, std::size_t bytes);
  /// Copies from pinned memory, which must stay as it is until the copy is done.
  void upload_pinned(void* device, const std::byte* pinned, std::size_t bytes);
  /// Copies to host memory, and waits for it.
  void download(void* host, const void* device, std::size_t bytes);
  /// Sets every byte to zero.
  void clear(void* device, std::size_t bytes);
  void copy(void* to, const void* from, std::size_t bytes);

  /// Returns when all work is done.
  void wait();
  void record(const Event& event);
  /// Later work of this stream starts after the work before `event`, wherever that was recorded.
  void wait_for(const Event& event);

  /// Records what `work` puts on this stream, instead of doing it. The arrays it uses must outlive the graph;
  /// the work may neither wait, nor upload() or download().
  Graph capture(const std::function<void()>& work);
  void launch(const Graph& graph);

#if !defined(__CUDACC__)
  /// On the host: puts a function into the queue. Not there in the implementation for CUDA.
  void enqueue(std::function<void()> work);
#endif

 private:
  std::unique_ptr<Implementation> implementation_;
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

/// For NVIDIA's libraries, on CUDA: the cudaStream_t.
void* native_stream(const Stream& stream);

/// For kernel.h, on CUDA: one kernel with its extents and pointers to its arguments. `overlaps`: whether it
/// waits by itself for the kernel before it.
struct LaunchExtent {
  unsigned x, y, z;
};
void start_kernel(Stream& stream, const void* kernel, LaunchExtent grid, LaunchExtent block,
                  std::size_t shared_bytes, bool overlaps, void** arguments);

/// Bytes of shared memory that a block can have on the device that use_device() chose.
std::size_t shared_bytes_limit();

}  // namespace sweep::cuda
