// How the CPU engine lays out its arrays: blocks of 16 images, one image per SIMD lane.
#pragma once

#include <cstddef>
#include <utility>

namespace sweep::cpu {

/// Images in a block. Activations of a block are [channel][y][x][kLanes] floats, so one load fetches the same
/// value of 16 images. Fixed, so that the layout and the sums do not depend on the machine's vector width: a
/// vector of 8 floats passes over each block twice.
inline constexpr std::size_t kLanes = 16;

/// Floats at a 64-byte boundary (one cache line, the longest vector), zero at first. Move-only.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(std::size_t floats);
  AlignedBuffer(AlignedBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~AlignedBuffer();

  float* data() { return data_; }
  const float* data() const { return data_; }
  std::size_t size() const { return size_; }
  void fill_zero();

 private:
  float* data_ = nullptr;
  std::size_t size_ = 0;
};

/// How the pixels of a value, or of its gradient, lie in memory: channels of rows of pixels of kLanes floats
/// each, dense unless an op wants zeros around them. Counts are in pixels.
struct ImageLayout {
  std::size_t channels, rows, width;
  std::size_t plane, pitch;  // from a channel to the next, from a row to the next
  std::size_t first;         // the first pixel of a channel
  std::size_t border;  // zero pixels left and right of each row, which who writes the rows must write, too

  std::size_t floats() const { return channels * plane * kLanes; }
  bool dense() const { return plane == rows * width; }
};

constexpr ImageLayout dense_layout(std::size_t channels, std::size_t rows, std::size_t width) {
  return {channels, rows, width, rows * width, width, 0, 0};
}

/// Rounds up to a whole number of cache lines of floats.
constexpr std::size_t round_up_to_cache_line(std::size_t floats) { return (floats + 15) / 16 * 16; }

/// Splits `total` items into `parts` nearly equal runs; returns the first item of run `index`. Static, so
/// that who does what never depends on timing.
constexpr std::size_t part_begin(std::size_t total, std::size_t parts, std::size_t index) {
  return total * index / parts;
}

}  // namespace sweep::cpu
