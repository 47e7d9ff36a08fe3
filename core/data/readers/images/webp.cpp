// WebP through libwebp, if it was found when this was built.
#include "core/data/readers/images/image_file.h"

#ifdef SWEEP_WEBP

#include <webp/decode.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

namespace sweep {
namespace {

// EXIF's, if the file is of the extended format and says that it has it: chunks of a name, a length and as
// many bytes, padded to an even number.
int orientation_of(std::span<const std::uint8_t> file) {
  constexpr std::size_t kFileHeader = 12, kChunkHeader = 8, kFlags = kFileHeader + kChunkHeader;
  constexpr std::uint8_t kHasExif = 8;
  const auto is_at = [&](std::size_t at, std::string_view text) {
    return at + text.size() <= file.size() && std::memcmp(&file[at], text.data(), text.size()) == 0;
  };
  if (!is_at(kFileHeader, "VP8X") || file.size() <= kFlags || (file[kFlags] & kHasExif) == 0) return 1;
  std::size_t bytes = 0;
  for (std::size_t at = kFileHeader; at + kChunkHeader <= file.size(); at += bytes + bytes % 2) {
    const bool is_exif = is_at(at, "EXIF");
    bytes = file[at + 4] | file[at + 5] << 8 | file[at + 6] << 16 | std::size_t{file[at + 7]} << 24;
    at += kChunkHeader;
    if (!is_exif) continue;
    const std::size_t prefix = bytes >= 6 && is_at(at, {"Exif\0", 6}) ? 6 : 0;  // of some writers
    return exif_orientation(file.subspan(at, std::min(bytes, file.size() - at)).subspan(prefix));
  }
  return 1;
}

}  // namespace

bool can_decode_webp() { return true; }

StoredImage decode_webp(const EncodedImage& file) {
  WebPBitstreamFeatures features{};
  if (WebPGetFeatures(file.bytes.data(), file.bytes.size(), &features) != VP8_STATUS_OK)
    refuse(file.name, "the WebP data is damaged");
  if (features.has_animation != 0) refuse(file.name, "is an animation; only still images are read");
  const auto height = static_cast<std::uint32_t>(features.height);
  const auto width = static_cast<std::uint32_t>(features.width);
  file.check_size(height, width);
  std::vector<std::uint8_t> pixels(std::size_t{height} * width * 3);
  if (WebPDecodeRGBInto(file.bytes.data(), file.bytes.size(), pixels.data(), pixels.size(),
                        features.width * 3) == nullptr) {
    refuse(file.name, "the WebP data is damaged");
  }
  return {{height, width}, 3, std::move(pixels), orientation_of(file.bytes)};
}

}  // namespace sweep

#else

namespace sweep {

bool can_decode_webp() { return false; }

StoredImage decode_webp(const EncodedImage& file) {
  refuse(file.name, "is a WebP image, which this build cannot read: it was built without libwebp");
}

}  // namespace sweep

#endif
