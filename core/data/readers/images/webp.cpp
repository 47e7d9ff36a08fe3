// WebP through libwebp, if it was found when this was built.
#include "core/data/readers/images/pixel_sink.h"

#ifdef SWEEP_WEBP

#include <webp/decode.h>

namespace sweep {

bool can_decode_webp() { return true; }

void decode_webp(std::span<const std::uint8_t> file, PixelSink& sink) {
  WebPBitstreamFeatures features{};
  if (WebPGetFeatures(file.data(), file.size(), &features) != VP8_STATUS_OK) {
    sink.fail("the WebP data is damaged");
  }
  if (features.has_animation != 0) sink.fail("is an animation; only still images are read");
  const auto height = static_cast<std::uint32_t>(features.height);
  const auto width = static_cast<std::uint32_t>(features.width);
  sink.check_size(height, width);
  std::vector<std::uint8_t> pixels(std::size_t{height} * width * 3);
  if (WebPDecodeRGBInto(file.data(), file.size(), pixels.data(), pixels.size(), features.width * 3) ==
      nullptr) {
    sink.fail("the WebP data is damaged");
  }
  sink.begin({height, width}, 3, 1);
  for (std::size_t y = 0; y < height; ++y) {
    sink.add_row(std::span(pixels).subspan(y * width * 3, std::size_t{width} * 3));
  }
}

}  // namespace sweep

#else

namespace sweep {

bool can_decode_webp() { return false; }

void decode_webp(std::span<const std::uint8_t>, PixelSink& sink) {
  sink.fail("is a WebP image, which this build cannot read: it was built without libwebp");
}

}  // namespace sweep

#endif
