// Encodes PNG files, tuned for speed. Not part of the installed interface.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "tbwriter/image.h"

namespace sweep::tbwriter {

/// What is searched for repetitions. Either content is encoded exactly.
enum class PngContent {
  kAny,          // bytes that were seen before, as in drawings and enlarged pictures
  kPhotographs,  // runs of one byte only: twice as fast, and natural pictures have little else
};

/// Returns a PNG file. `pixels` are [height, width, channels] with 8 bits each; the sizes must match, be
/// positive, and channels be 1 to 4. With a palette of up to 256 colours, `size` has 1 channel and the pixels
/// are indices into it. Throws UsageError if the file would be too large. Thread-safe.
std::string encode_png(std::span<const std::uint8_t> pixels, ImageSize size, PngContent content,
                       std::span<const Color> palette = {});

}  // namespace sweep::tbwriter
