#include "core/kernels/cuda/runtime/memory_plan.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace sweep::cuda {

Slot MemoryPlan::add(std::size_t bytes, int first, int last) {
  requests_.push_back({aligned(std::max<std::size_t>(bytes, 1)), first, last});
  return {static_cast<int>(requests_.size()) - 1};
}

Slot MemoryPlan::add_rows(std::size_t rows, std::size_t row_bytes, int first, int last) {
  const Slot slot = add(rows * row_bytes, first, last);
  requests_.back().row_bytes = row_bytes;
  return slot;
}

// Greedy by size, as in Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference"
// (2020): the largest array first, each at the lowest offset where it overlaps no array that is alive at the
// same time. Arrays of equal size keep their order, so the layout is the same on every machine.
std::size_t MemoryPlan::solve() {
  for (Request& request : requests_) {
    if (!in_micro_batches_ || request.first == request.last) continue;
    request.first = std::numeric_limits<int>::min();
    request.last = std::numeric_limits<int>::max();
  }
  std::vector<std::size_t> order(requests_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return requests_[a].bytes > requests_[b].bytes; });
  std::size_t total = 0;
  std::vector<const Request*> placed, neighbours;
  for (const std::size_t i : order) {
    Request& request = requests_[i];
    neighbours.clear();
    for (const Request* other : placed) {
      if (other->first <= request.last && request.first <= other->last) neighbours.push_back(other);
    }
    std::sort(neighbours.begin(), neighbours.end(),
              [](const Request* a, const Request* b) { return a->offset < b->offset; });
    for (const Request* other : neighbours) {
      if (request.offset + request.bytes <= other->offset) break;
      request.offset = std::max(request.offset, other->offset + other->bytes);
    }
    placed.push_back(&request);
    total = std::max(total, request.offset + request.bytes);
  }
  return total;
}

}  // namespace sweep::cuda
