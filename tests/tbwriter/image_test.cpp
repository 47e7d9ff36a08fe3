#include "tbwriter/image.h"

#include <gtest/gtest.h>
#include <spng.h>

#include <limits>
#include <memory>
#include <vector>

#include "tbwriter/error.h"

namespace sweep::tbwriter {
namespace {

struct Decoded {
  std::uint32_t width, height;
  int color_type;
  std::vector<std::uint8_t> pixels;
};

Decoded decode(const std::string& png, spng_format format = SPNG_FMT_PNG) {
  const std::unique_ptr<spng_ctx, decltype(&spng_ctx_free)> context(spng_ctx_new(0), spng_ctx_free);
  EXPECT_EQ(spng_set_png_buffer(context.get(), png.data(), png.size()), 0);
  spng_ihdr header{};
  EXPECT_EQ(spng_get_ihdr(context.get(), &header), 0);
  std::size_t size = 0;
  EXPECT_EQ(spng_decoded_image_size(context.get(), format, &size), 0);
  Decoded decoded{header.width, header.height, header.color_type, std::vector<std::uint8_t>(size)};
  EXPECT_EQ(spng_decode_image(context.get(), decoded.pixels.data(), size, format, 0), 0);
  return decoded;
}

std::vector<std::uint8_t> counting(std::size_t n) {
  std::vector<std::uint8_t> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<std::uint8_t>(i * 37 + i / 256);
  return values;
}

TEST(EncodeImage, GivesBackTheSamePixels) {
  const int color_types[] = {SPNG_COLOR_TYPE_GRAYSCALE, SPNG_COLOR_TYPE_GRAYSCALE_ALPHA,
                             SPNG_COLOR_TYPE_TRUECOLOR, SPNG_COLOR_TYPE_TRUECOLOR_ALPHA};
  for (std::int64_t channels = 1; channels <= 4; ++channels) {
    for (const auto& [height, width] : {std::pair<int, int>{1, 1}, {3, 5}, {64, 1}, {200, 301}}) {
      const auto pixels = counting(static_cast<std::size_t>(height * width * channels));
      const EncodedImage image = encode_image(pixels, {height, width, channels});
      const Decoded decoded = decode(image.bytes);
      EXPECT_EQ(decoded.pixels, pixels);
      EXPECT_EQ(decoded.width, width);
      EXPECT_EQ(decoded.height, height);
      EXPECT_EQ(decoded.color_type, color_types[channels - 1]);
      EXPECT_EQ(image.channels, channels);
    }
  }
}

TEST(EncodeDrawing, GivesEachPixelTheColourOfItsNumber) {
  for (const std::size_t colors : {1u, 2u, 17u, 256u}) {
    std::vector<Color> palette;
    for (std::size_t i = 0; i < colors; ++i) {
      const auto shade = static_cast<std::uint8_t>(i);
      palette.push_back({shade, static_cast<std::uint8_t>(255 - shade), 77});
    }
    std::vector<std::uint8_t> pixels = counting(35 * 51), expected;
    for (std::uint8_t& pixel : pixels) pixel = static_cast<std::uint8_t>(pixel % colors);
    for (const std::uint8_t pixel : pixels)
      expected.insert(expected.end(), palette[pixel].begin(), palette[pixel].end());
    const EncodedImage image = encode_drawing(pixels, {35, 51}, palette);
    const Decoded decoded = decode(image.bytes, SPNG_FMT_RGB8);
    EXPECT_EQ(decoded.pixels, expected);
    EXPECT_EQ(decoded.color_type, SPNG_COLOR_TYPE_INDEXED);
    EXPECT_EQ(image.channels, 3) << "TensorBoard knows no palettes";
  }
}

TEST(EncodeDrawing, RefusesWhatIsNotOfThePalette) {
  const std::vector<std::uint8_t> pixels = {0, 1, 2, 0};
  const std::vector<Color> three(3);
  EXPECT_NO_THROW(encode_drawing(pixels, {2, 2}, three));
  EXPECT_THROW(encode_drawing(pixels, {2, 2}, std::span(three).first(2)), UsageError);
  EXPECT_THROW(encode_drawing(pixels, {2, 2}, {}), UsageError);
  EXPECT_THROW(encode_drawing(pixels, {2, 2}, std::vector<Color>(257)), UsageError);
  EXPECT_THROW(encode_drawing(pixels, {2, 3}, three), UsageError);
  EXPECT_THROW(encode_drawing(pixels, {0, 2}, three), UsageError);
  EXPECT_THROW(encode_drawing(pixels, {2, 2, 3}, three), UsageError);
}

TEST(EncodeImageGrid, PlacesPicturesAsMakeGridDoes) {
  // Three pictures of 1x2 in two columns, one pixel of padding, 7 as background.
  const std::vector<std::uint8_t> pixels{1, 2, 3, 4, 5, 6};
  const EncodedImage image =
      encode_image_grid(pixels, {3, 1, 1, 2}, {.columns = 2, .padding = 1, .background = 7});
  const Decoded decoded = decode(image.bytes);
  EXPECT_EQ(decoded.width, 7u);
  EXPECT_EQ(decoded.height, 5u);
  EXPECT_EQ(decoded.pixels, (std::vector<std::uint8_t>{7, 7, 7, 7, 7, 7, 7,  //
                                                       7, 1, 2, 7, 3, 4, 7,  //
                                                       7, 7, 7, 7, 7, 7, 7,  //
                                                       7, 5, 6, 7, 7, 7, 7,  //
                                                       7, 7, 7, 7, 7, 7, 7}));
}

TEST(EncodeImageGrid, InterleavesTheChannels) {
  const std::vector<std::uint8_t> planes{10, 11, 20, 21, 30, 31};
  const Decoded decoded = decode(encode_image_grid(planes, {1, 3, 1, 2}, {.padding = 0}).bytes);
  EXPECT_EQ(decoded.pixels, (std::vector<std::uint8_t>{10, 20, 30, 11, 21, 31}));
}

TEST(EncodeImageGrid, Of64SmallPicturesIs242Wide) {
  const EncodedImage image = encode_image_grid(counting(64 * 28 * 28), {64, 1, 28, 28});
  EXPECT_EQ(image.width, 242);
  EXPECT_EQ(image.height, 242);
}

TEST(EncodeImageGrid, TurnsFloatsBackIntoTheBytesTheyCameFrom) {
  std::vector<float> values;
  std::vector<std::uint8_t> bytes;
  for (int k = 0; k < 256; ++k) {
    values.push_back(static_cast<float>(k) / 255.0f);
    bytes.push_back(static_cast<std::uint8_t>(k));
  }
  EXPECT_EQ(decode(encode_image_grid(values, {1, 1, 16, 16}, {.padding = 0}).bytes).pixels, bytes);
}

TEST(EncodeImageGrid, ClampsFloatsAndTakesNanAsBlack) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> values{-1, 2, inf, -inf, std::numeric_limits<float>::quiet_NaN(), 0.5f};
  EXPECT_EQ(decode(encode_image_grid(values, {1, 1, 1, 6}, {.padding = 0}).bytes).pixels,
            (std::vector<std::uint8_t>{0, 255, 255, 0, 0, 128}));
}

TEST(EncodeImage, RefusesSizesThatDoNotFit) {
  const std::vector<std::uint8_t> pixels(12);
  EXPECT_THROW(encode_image(pixels, {3, 3, 1}), UsageError);
  EXPECT_THROW(encode_image(pixels, {0, 3, 1}), UsageError);
  EXPECT_THROW(encode_image(pixels, {-3, -4, 1}), UsageError);
  EXPECT_THROW(encode_image(pixels, {1, 2, 6}), UsageError);
  EXPECT_THROW(encode_image(pixels, {std::int64_t{1} << 62, 4, 3}), UsageError);
  EXPECT_THROW(encode_image_grid(pixels, {3, 2, 1, 2}), UsageError);
  EXPECT_THROW(encode_image_grid(pixels, {12, 1, 1, 1}, {.columns = 0}), UsageError);
  EXPECT_THROW(encode_image_grid(pixels, {12, 1, 1, 1}, {.padding = -1}), UsageError);
}

}  // namespace
}  // namespace sweep::tbwriter
