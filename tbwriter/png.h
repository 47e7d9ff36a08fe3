// Encoding of pixels, with settings measured for grids of small pictures. Not part of the installed
// interface.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "tbwriter/image.h"

namespace sweep::tbwriter {

/// Returns `pixels`, [height, width, channels], as a PNG file. The sizes must fit and be positive.
std::string encode_png(std::span<const std::uint8_t> pixels, ImageSize size);

/// The same for pixels that are numbers of colours in `palette`, 1 to 256 of them; size.channels is 1.
std::string encode_png(std::span<const std::uint8_t> pixels, ImageSize size, std::span<const Color> palette);

}  // namespace sweep::tbwriter
