// The one thing of EXIF that decides how an image looks.
#pragma once

#include <cstdint>
#include <span>

namespace sweep {

/// The orientation, 1 to 8, in `tiff`, the TIFF structure of EXIF data without the leading "Exif\0\0": 1 is
/// upright, 6 and 8 are turned by 90 degrees. 1 also if there is none, or if the data is damaged, which
/// leaves the image itself whole.
int exif_orientation(std::span<const std::uint8_t> tiff);

}  // namespace sweep
