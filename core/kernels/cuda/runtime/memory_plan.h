// Where arrays lie in one block of memory that they share: those that are never alive together may overlap.
#pragma once

#include <cstddef>
#include <vector>

namespace sweep::cuda {

/// Stands for an array of a MemoryPlan.
struct Slot {
  int index = -1;  // -1: no array
  explicit operator bool() const { return index >= 0; }
};

class MemoryPlan {
 public:
  /// Asks for an array that is alive from moment `first` to moment `last` of a step, both included.
  Slot add(std::size_t bytes, int first, int last);

  /// Keeps an array until moment `last`, if it is not alive for longer already. Not after solve().
  void keep(Slot slot, int last);

  /// Lays all arrays out and returns the bytes they need together. No add() after it.
  std::size_t solve();

  /// Bytes from the start of the memory; a multiple of 256. After solve().
  std::size_t offset(Slot slot) const { return requests_[static_cast<std::size_t>(slot.index)].offset; }

 private:
  struct Request {
    std::size_t bytes;
    int first, last;
    std::size_t offset = 0;
  };
  std::vector<Request> requests_;
};

}  // namespace sweep::cuda
