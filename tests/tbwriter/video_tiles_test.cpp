// Several videos side by side, and pictures in either order of pixels, of bytes or floats.
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "tbwriter/error.h"
#include "tbwriter/image.h"

namespace sweep::tbwriter {
namespace {

std::vector<std::uint8_t> counting(std::size_t n) {
  std::vector<std::uint8_t> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<std::uint8_t>(i * 37);
  return values;
}

std::vector<float> parts(const std::vector<std::uint8_t>& bytes) {
  std::vector<float> values;
  for (const std::uint8_t byte : bytes) values.push_back(static_cast<float>(byte) / 255);
  return values;
}

// By the formulas of torch.utils.tensorboard._utils._prepare_video: 3 videos take 4 places, 2 rows of 2.
TEST(EncodeVideos, PutsVideosSideBySideAsPyTorchDoes) {
  const VideoBatchSize size = {.videos = 3, .frames = 2, .channels = 3, .height = 4, .width = 5};
  const auto pixels = counting(3 * 2 * 3 * 4 * 5);
  std::vector<std::uint8_t> whole(2 * 8 * 10 * 3);
  for (std::size_t v = 0; v < 3; ++v) {
    for (std::size_t t = 0; t < 2; ++t) {
      for (std::size_t c = 0; c < 3; ++c) {
        for (std::size_t y = 0; y < 4; ++y) {
          for (std::size_t x = 0; x < 5; ++x) {
            whole[((t * 8 + v / 2 * 4 + y) * 10 + v % 2 * 5 + x) * 3 + c] =
                pixels[(((v * 2 + t) * 3 + c) * 4 + y) * 5 + x];
          }
        }
      }
    }
  }
  const std::string wanted =
      encode_video(whole, {.frames = 2, .height = 8, .width = 10, .channels = 3}, 4).bytes;
  EXPECT_EQ(encode_videos(pixels, size, 4).bytes, wanted);
  EXPECT_EQ(encode_videos(parts(pixels), size, 4).bytes, wanted);
}

TEST(EncodeVideos, HasHalfAsManyRowsWhereNoSquareFits) {
  const auto image =
      encode_videos(counting(8 * 4 * 5), {.videos = 8, .frames = 1, .height = 4, .width = 5}, 4);
  EXPECT_EQ(image.height, 2 * 4);
  EXPECT_EQ(image.width, 4 * 5);
}

TEST(EncodeVideos, RefusesSizesThatDoNotMatch) {
  const auto pixels = counting(24);
  EXPECT_THROW(encode_videos(pixels, {.videos = 5, .frames = 1, .height = 2, .width = 2}, 4), UsageError);
  EXPECT_THROW(encode_videos(pixels, {.videos = 0, .frames = 1, .height = 2, .width = 2}, 4), UsageError);
  EXPECT_THROW(
      encode_videos(pixels,
                    {.videos = 65535, .frames = 65535, .channels = 3, .height = 65535, .width = 65535}, 4),
      UsageError);
}

TEST(EncodeImage, TakesPlanesAndFloats) {
  const auto planes = counting(3 * 4 * 5);
  std::vector<std::uint8_t> mixed;
  for (std::size_t i = 0; i < 20; ++i) mixed.insert(mixed.end(), {planes[i], planes[20 + i], planes[40 + i]});
  const ImageSize hwc = {.height = 4, .width = 5, .channels = 3};
  ImageSize chw = hwc;
  chw.order = PixelOrder::kChw;
  const std::string wanted = encode_image(mixed, hwc).bytes;
  EXPECT_EQ(encode_image(planes, chw).bytes, wanted);
  EXPECT_EQ(encode_image(parts(planes), chw).bytes, wanted);
  EXPECT_EQ(encode_image(parts(mixed), hwc).bytes, wanted);
  const Box boxes[] = {{.left = 1, .top = 1, .right = 3, .bottom = 2}};
  const std::string boxed = encode_image_with_boxes(mixed, hwc, boxes).bytes;
  EXPECT_NE(boxed, wanted);
  EXPECT_EQ(encode_image_with_boxes(planes, chw, boxes).bytes, boxed);
  EXPECT_EQ(encode_image_with_boxes(parts(planes), chw, boxes).bytes, boxed);
  EXPECT_EQ(encode_image_with_boxes(parts(mixed), hwc, boxes).bytes, boxed);
  const std::vector<float> wild = {-1, 2, std::numeric_limits<float>::quiet_NaN(), 1};
  EXPECT_EQ(encode_image(wild, {.height = 2, .width = 2}).bytes,
            encode_image(std::vector<std::uint8_t>{0, 255, 0, 255}, {.height = 2, .width = 2}).bytes);
  EXPECT_THROW(encode_image(std::vector<float>(5), {.height = 2, .width = 2}), UsageError);
}

}  // namespace
}  // namespace sweep::tbwriter
