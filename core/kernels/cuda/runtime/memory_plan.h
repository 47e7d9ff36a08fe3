// Lays the arrays of a step out in one block of device memory. Arrays that are never alive at the same time
// may get the same place, so a network needs far less than the sum of its activations and gradients.
#pragma once

#include <cstddef>
#include <vector>

namespace sweep::cuda {

/// `bytes` rounded up to where the next array may begin: as cudaMalloc aligns, and libraries choose kernels
/// by it.
constexpr std::size_t aligned(std::size_t bytes) {
  constexpr std::size_t kAlignment = 256;
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// An array of a MemoryPlan.
struct Slot {
  int index = -1;  // -1: no array
  explicit operator bool() const { return index >= 0; }
};

/// Time is counted in moments of a step: integers, one per op and pass, in the order of execution (see
/// Compiler in compiler.cpp). Work of one moment may read and write all arrays that are alive in it.
class MemoryPlan {
 public:
  MemoryPlan() = default;
  /// `in_micro_batches`: the samples come in micro-batches, each at its own moments, so only arrays of a
  /// single moment, which no micro-batch leaves to another, share memory.
  explicit MemoryPlan(bool in_micro_batches) : in_micro_batches_(in_micro_batches) {}

  /// Requests an array of `bytes` that is alive from moment `first` to moment `last`, both included. Its
  /// content is undefined before `first`.
  Slot add(std::size_t bytes, int first, int last);
  /// The same for `rows` rows, one per sample of a batch, so that the place of a sample is known.
  Slot add_rows(std::size_t rows, std::size_t row_bytes, int first, int last);

  /// Lays out all arrays and returns the size of the block in bytes. Call it once, after the last add().
  std::size_t solve();

  /// Bytes from the start of the block, a multiple of 256. After solve().
  std::size_t offset(Slot slot) const { return requests_[static_cast<std::size_t>(slot.index)].offset; }

  /// Bytes per sample; 0 if the array is not one of rows.
  std::size_t row_bytes(Slot slot) const { return requests_[static_cast<std::size_t>(slot.index)].row_bytes; }

 private:
  struct Request {
    std::size_t bytes;
    int first, last;
    std::size_t row_bytes = 0, offset = 0;
  };
  bool in_micro_batches_ = false;
  std::vector<Request> requests_;
};

}  // namespace sweep::cuda
