// Array layouts of the CPU engine: blocks of 16 images, one image per SIMD lane.
//
// A block's value is [channels][rows][columns][16] floats; the last axis is the image. All
// arithmetic of a layer is then the same for all lanes, whatever the layer's sizes: vectors are always full
// and aligned, weights are broadcast, and neither channels nor widths have to be padded.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>

namespace sweep::cpu {

/// Images in a block. 16 floats are a cache line and an AVX-512 vector. The number is fixed, so that
/// layouts and the order of sums do not depend on the machine's vector width: with vectors of 8 floats,
/// kernels go over a block twice.
inline constexpr std::size_t kLanes = 16;

/// The most blocks that go through a layer together.
inline constexpr std::size_t kMaxBlocksAtOnce = 4;

/// An array of floats, zero at first, aligned to 64 bytes: a cache line and the longest vector. From 2 MiB on
/// it is aligned to, and asks for, large pages. Move-only. The constructor throws std::bad_alloc.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  /// `floats` is rounded up to whole cache lines.
  explicit AlignedBuffer(std::size_t floats);

  float* data() { return data_; }
  const float* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::unique_ptr<void, Free> memory_;
  float* data_ = nullptr;  // in memory_
  std::size_t size_ = 0;
};

/// Counts what buffers would take, without the memory. While one exists, AlignedBuffers that are made on its
/// thread have a size and an address, but no memory: only their bytes are counted. Nobody may read or write
/// them. So the sizes of an engine's buffers come from the code that allocates them.
class AllocationCount {
 public:
  AllocationCount();
  ~AllocationCount();
  AllocationCount(const AllocationCount&) = delete;
  AllocationCount& operator=(const AllocationCount&) = delete;

  std::size_t bytes() const { return bytes_; }

  /// Whether the calling thread counts; then adds `bytes`.
  static bool add(std::size_t bytes);

 private:
  std::size_t bytes_ = 0;
};

/// Layout of a value or of its gradient: channels of rows of pixels, each pixel kLanes floats; with zeros
/// around the rows, if an op reads it so. All counts are in pixels.
struct ImageLayout {
  std::size_t channels, rows, width;
  std::size_t plane, pitch;  // from one channel to the next, from one row to the next
  std::size_t first = 0;     // offset of a channel's first pixel
  std::size_t border = 0;    // zero pixels left and right of each row, written together with the row

  std::size_t floats() const { return channels * plane * kLanes; }
  std::size_t channel_begin(std::size_t channel) const { return (channel * plane + first) * kLanes; }
};

/// Without zeros a channel is one row.
constexpr ImageLayout dense_layout(std::size_t channels, std::size_t pixels) {
  return {channels, 1, pixels, pixels, pixels};
}

/// Rounds a number of floats up to whole cache lines.
constexpr std::size_t round_up_to_cache_line(std::size_t floats) { return (floats + 15) / 16 * 16; }

/// Splits [0, total) into `parts` nearly equal ranges and returns the begin of range `index`;
/// that of index + 1 is its end.
constexpr std::size_t part_begin(std::size_t total, std::size_t parts, std::size_t index) {
  return total * index / parts;
}
/// The one of these ranges that has element `i` < total.
constexpr std::size_t part_of(std::size_t total, std::size_t parts, std::size_t i) {
  return ((i + 1) * parts - 1) / total;
}

}  // namespace sweep::cpu
