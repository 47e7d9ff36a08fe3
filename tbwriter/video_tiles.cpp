// Several videos side by side in one.
#include <bit>
#include <string>
#include <vector>

#include "tbwriter/error.h"
#include "tbwriter/image.h"
#include "tbwriter/pixel.h"

namespace sweep::tbwriter {

EncodedImage encode_videos(const Pixels& pixels, VideoBatchSize size, double frames_per_second) {
  const auto [videos, frames, channels, height, width] = size;
  constexpr std::int64_t kMaxExtent =
      65535;  // of a GIF, in each direction; products of five fit into 128 bits only
  for (const std::int64_t extent : {videos, frames, channels, height, width}) {
    if (extent >= 1 && extent <= kMaxExtent) continue;
    throw UsageError("videos of " + std::to_string(videos) + " x " + std::to_string(frames) + " x " +
                     std::to_string(channels) + " x " + std::to_string(height) + " x " +
                     std::to_string(width) + " were given, but each extent must be 1 to 65535");
  }
  const std::size_t given = count_values(pixels);
  std::size_t wanted = 1;
  bool fits = true;
  for (const std::int64_t extent : {videos, frames, channels, height, width}) {
    fits = fits && wanted <= given / static_cast<std::size_t>(extent);
    wanted *= static_cast<std::size_t>(extent);
  }
  if (!fits || wanted != given) {
    throw UsageError("videos of " + std::to_string(videos) + " x " + std::to_string(frames) + " x " +
                     std::to_string(channels) + " x " + std::to_string(height) + " x " +
                     std::to_string(width) + " got " + std::to_string(given) + " values");
  }
  const auto places = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(videos)));
  const std::int64_t rows = std::int64_t{1} << ((std::bit_width(static_cast<std::uint64_t>(places)) - 1) / 2);
  const std::int64_t columns = places / rows;
  const VideoSize whole = {
      .frames = frames, .height = rows * height, .width = columns * width, .channels = channels};
  if (whole.height > kMaxExtent || whole.width > kMaxExtent) {
    throw UsageError("videos side by side would have " + std::to_string(whole.width) + " x " +
                     std::to_string(whole.height) + " pixels, but at most 65535 fit in each direction");
  }
  std::vector<std::uint8_t> canvas(static_cast<std::size_t>(frames * whole.height * whole.width * channels));
  std::size_t source = 0;
  for (std::int64_t video = 0; video < videos; ++video) {
    const std::int64_t top = video / columns * height, left = video % columns * width;
    for (std::int64_t frame = 0; frame < frames; ++frame) {
      for (std::int64_t c = 0; c < channels; ++c) {
        for (std::int64_t y = 0; y < height; ++y, source += static_cast<std::size_t>(width)) {
          std::uint8_t* row =
              canvas.data() + (((frame * whole.height + top + y) * whole.width + left) * channels + c);
          copy_values(pixels, source, width, row, channels);
        }
      }
    }
  }
  return encode_video(canvas, whole, frames_per_second);
}

}  // namespace sweep::tbwriter
