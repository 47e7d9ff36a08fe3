#include "core/data/augment.h"

#include <algorithm>
#include <utility>

namespace sweep {
namespace {

constexpr AugmentType kTypes[] = {{AugmentKind::kRandomCrop, "random_crop", "padding"},
                                  {AugmentKind::kHorizontalFlip, "horizontal_flip", ""},
                                  {AugmentKind::kCutout, "cutout", "size"}};

// One channel of an image.
template <typename T>
struct Plane {
  T* values;
  std::int64_t height, width;
  T* row(std::int64_t y) const { return values + y * width; }
};

// Sets pixel (y, x) to what was at (y + dy, x + dx), or to 0 beyond the edge. Rows are visited in the order
// in which none is overwritten before it was read.
template <typename T>
void shift(const Plane<T>& plane, std::int64_t dy, std::int64_t dx) {
  const std::int64_t count = std::max<std::int64_t>(plane.width - std::abs(dx), 0);  // that stay in a row
  for (std::int64_t i = 0; i < plane.height; ++i) {
    const std::int64_t y = dy >= 0 ? i : plane.height - 1 - i;
    T* to = plane.row(y);
    if (y + dy < 0 || y + dy >= plane.height) {
      std::fill_n(to, plane.width, T{0});
      continue;
    }
    const T* from = plane.row(y + dy);
    if (dx >= 0) {
      std::copy(from + plane.width - count, from + plane.width, to);
      std::fill(to + count, to + plane.width, T{0});
    } else {
      std::copy_backward(from, from + count, to + plane.width);
      std::fill(to, to + plane.width - count, T{0});
    }
  }
}

template <typename T>
void flip(const Plane<T>& plane) {
  for (std::int64_t y = 0; y < plane.height; ++y) std::reverse(plane.row(y), plane.row(y) + plane.width);
}

template <typename T>
void cut_out(const Plane<T>& plane, std::int64_t top, std::int64_t left, std::int64_t size) {
  const auto visible = [size](std::int64_t begin, std::int64_t extent) {
    return std::pair(std::max<std::int64_t>(begin, 0), std::min(begin + size, extent));
  };
  const auto [first_row, last_row] = visible(top, plane.height);
  const auto [first, last] = visible(left, plane.width);
  for (std::int64_t y = first_row; y < last_row; ++y)
    std::fill(plane.row(y) + first, plane.row(y) + last, T{0});
}

template <typename T>
void augment(std::span<T> values, const Shape& shape, std::span<const AugmentStep> steps,
             const AugmentKey& key) {
  const std::int64_t height = shape[1], width = shape[2];
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const AugmentChange change = draw_change(steps[i], i, key, height, width);
    for (std::int64_t c = 0; c < shape[0]; ++c) {
      const Plane<T> plane{values.data() + c * height * width, height, width};
      switch (change.kind) {
        case AugmentKind::kRandomCrop:
          shift(plane, change.top, change.left);
          break;
        case AugmentKind::kHorizontalFlip:
          if (change.size != 0) flip(plane);
          break;
        case AugmentKind::kCutout:
          cut_out(plane, change.top, change.left, change.size);
          break;
      }
    }
  }
}

}  // namespace

std::span<const AugmentType> augment_types() { return kTypes; }

void augment_image(std::span<std::uint8_t> values, const Shape& shape, std::span<const AugmentStep> steps,
                   const AugmentKey& key) {
  augment(values, shape, steps, key);
}
void augment_image(std::span<float> values, const Shape& shape, std::span<const AugmentStep> steps,
                   const AugmentKey& key) {
  augment(values, shape, steps, key);
}

}  // namespace sweep
