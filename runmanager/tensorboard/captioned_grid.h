// A grid of pictures with a caption below each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/base/shape.h"
#include "tbwriter/image.h"

namespace sweep {

/// Whether samples of this shape can be drawn: [1 or 3, height, width].
inline bool is_picture(const Shape& shape) { return shape.size() == 3 && (shape[0] == 1 || shape[0] == 3); }

/// How many pictures of this shape one image may show, `limit` at most: it must fit into a record of an
/// events file. 0 if one is too large.
std::size_t shown_pictures(const Shape& picture, std::size_t limit);

/// `text`, or if it is wider than `width` pixels its beginning with "..".
std::string cut_text(std::string text, std::int64_t width);

/// Draws pictures, [count, channels, height, width] of 8 bits, white captions on black below them, `columns`
/// a row. Pictures of less than 64 pixels are enlarged by a whole number. Wider lines make the cells wider,
/// up to 144 pixels; longer ones are cut. `captions`: one per picture, of one line or two. Throws UsageError
/// for extents that tbwriter::encode_image() refuses.
tbwriter::EncodedImage draw_captioned_grid(std::span<const std::uint8_t> pixels, tbwriter::BatchSize size,
                                           std::span<const std::string> captions, std::size_t columns);

}  // namespace sweep
