// The shape of an array or of one sample.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

namespace sweep {

/// Extents, outermost first. A sample has no batch dimension: [channels, height, width] or [features].
using Shape = std::vector<std::int64_t>;

/// Number of elements; 1 for the empty shape. Extents must be >= 0 and their product must fit.
inline std::size_t element_count(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::size_t{1}, [](std::size_t n, std::int64_t extent) {
    return n * static_cast<std::size_t>(extent);
  });
}

/// "[6, 24, 24]", as error messages and logs show it.
inline std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

}  // namespace sweep
