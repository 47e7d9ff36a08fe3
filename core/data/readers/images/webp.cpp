// WebP through libwebp, if it was found when this was built.
#include "core/data/readers/images/image_decoders.h"

#ifdef SWEEP_WEBP

#include <webp/decode.h>

#include <utility>

namespace sweep {

bool can_decode_webp() { return true; }

StoredImage decode_webp(const EncodedImage& file) {
  WebPBitstreamFeatures features{};
  if (WebPGetFeatures(file.bytes.data(), file.bytes.size(), &features) != VP8_STATUS_OK) {
    file.fail("the WebP data is damaged");
  }
  if (features.has_animation != 0) file.fail("is an animation; only still images are read");
  const auto height = static_cast<std::uint32_t>(features.height);
  const auto width = static_cast<std::uint32_t>(features.width);
  file.check_size(height, width);
  std::vector<std::uint8_t> pixels(std::size_t{height} * width * 3);
  if (WebPDecodeRGBInto(file.bytes.data(), file.bytes.size(), pixels.data(), pixels.size(),
                        features.width * 3) == nullptr) {
    file.fail("the WebP data is damaged");
  }
  return {{height, width}, 3, std::move(pixels)};
}

}  // namespace sweep

#else

namespace sweep {

bool can_decode_webp() { return false; }

StoredImage decode_webp(const EncodedImage& file) {
  file.fail("is a WebP image, which this build cannot read: it was built without libwebp");
}

}  // namespace sweep

#endif
