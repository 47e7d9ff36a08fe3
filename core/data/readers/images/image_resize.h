// Resizes images.
//
// The filter is the triangle of PIL's and torchvision's "bilinear" with antialiasing. With scale = in / out
// and radius = max(scale, 1), output pixel i is the mean of the input pixels j, weighted by
//   max(0, 1 - |j + 0.5 - (i + 0.5) * scale| / radius),
// in each direction. An equal size leaves the image as it is. Sums are in float, rounded to the nearest once
// at the end, where PIL rounds after each direction: results differ from PIL's by at most one or two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/data/readers/images/image_file.h"

namespace sweep {

/// Returns `pixels`, [from.height, from.width, channels], as [to.height, to.width, channels]. All extents are
/// at least 1.
std::vector<std::uint8_t> resized(std::span<const std::uint8_t> pixels, ImageSize from, ImageSize to,
                                  std::size_t channels);

}  // namespace sweep
