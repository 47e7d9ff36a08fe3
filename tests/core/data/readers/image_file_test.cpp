// Image files: each format gives its pixels, converted as image_file.h says.
#include "core/data/readers/images/image_file.h"

#ifdef SWEEP_WEBP
#include <webp/encode.h>
#endif

#include "tests/support/image_files.h"
#include "tests/support/test.h"

namespace sweep::image_file_test {

using test::flat_pixels, test::jpeg_file, test::make_pixels, test::Pixels, test::png_file,
    test::with_orientation;

Image decode(const std::string& file, const ImageOptions& options = {}) {
  return decode_image(std::span(reinterpret_cast<const std::uint8_t*>(file.data()), file.size()), options,
                      "FILE");
}

// [channels, height, width] of what the test has interleaved.
std::vector<std::uint8_t> planes(const Pixels& pixels) {
  std::vector<std::uint8_t> out;
  for (std::size_t c = 0; c < pixels.channels; ++c) {
    for (std::size_t i = c; i < pixels.values.size(); i += pixels.channels) out.push_back(pixels.values[i]);
  }
  return out;
}

// Every pixel differs from its neighbours in each channel.
Pixels colours(std::uint32_t height, std::uint32_t width) {
  return make_pixels(height, width, 3,
                     [](unsigned y, unsigned x, unsigned c) { return 30 * y + 7 * x + 90 * c; });
}

void expect_near(const Image& image, const std::vector<int>& colour, int tolerance) {
  ASSERT_EQ(image.channels, colour.size());
  const std::size_t plane = image.pixels.size() / image.channels;
  for (std::size_t i = 0; i < image.pixels.size(); ++i) {
    ASSERT_NEAR(image.pixels[i], colour[i / plane], tolerance) << "at " << i;
  }
}

TEST(DecodeImage, ReadsPng) {
  const Pixels pixels = colours(3, 5);
  const Image image = decode(png_file(pixels));
  EXPECT_EQ(image.size, (ImageSize{3, 5}));
  EXPECT_EQ(image.channels, 3u);
  EXPECT_EQ(image.pixels, planes(pixels));
}

TEST(DecodeImage, ReadsJpegOfColourAndGray) {
  expect_near(decode(jpeg_file(flat_pixels(20, 30, {200, 100, 50}))), {200, 100, 50}, 3);
  expect_near(decode(jpeg_file(flat_pixels(20, 30, {77}))), {77, 77, 77}, 1);
  expect_near(decode(jpeg_file(flat_pixels(20, 30, {200, 100, 50}), {.progressive = true})), {200, 100, 50},
              3);
}

TEST(DecodeImage, ConvertsCmykJpeg) {
  // Inks of half cyan, no magenta, full yellow, a fifth black.
  expect_near(decode(jpeg_file(flat_pixels(16, 16, {127, 255, 0, 204}), {.adobe_inks = true})), {102, 204, 0},
              3);
  expect_near(decode(jpeg_file(flat_pixels(16, 16, {128, 0, 255, 51}))), {102, 204, 0}, 3);
}

TEST(DecodeImage, KeepsTheUpperBitsOf16BitPng) {
  const Pixels pixels = colours(3, 5);
  EXPECT_EQ(decode(png_file(pixels, {.bits = 16})).pixels, planes(pixels));
  const Pixels gray = make_pixels(2, 2, 1, [](unsigned y, unsigned x, unsigned) { return 100 * y + x; });
  EXPECT_EQ(decode(png_file(gray, {.bits = 16}), {.grayscale = true}).pixels, gray.values);
}

TEST(DecodeImage, DropsAlpha) {
  EXPECT_THAT(decode(png_file(flat_pixels(1, 1, {10, 20, 30, 0}))).pixels, ElementsAre(10, 20, 30));
}

TEST(DecodeImage, ReadsInterlacedPng) {
  const Pixels pixels = colours(9, 11);
  EXPECT_EQ(decode(png_file(pixels, {.interlaced = true})).pixels, planes(pixels));
}

TEST(DecodeImage, MakesGrayFromColourAsPilDoes) {
  EXPECT_THAT(decode(png_file(flat_pixels(1, 1, {255, 0, 0})), {.grayscale = true}).pixels, ElementsAre(76));
  EXPECT_THAT(decode(png_file(flat_pixels(1, 1, {0, 255, 0})), {.grayscale = true}).pixels, ElementsAre(150));
  EXPECT_THAT(decode(png_file(flat_pixels(1, 1, {0, 0, 255})), {.grayscale = true}).pixels, ElementsAre(29));
  EXPECT_THAT(decode(png_file(flat_pixels(1, 1, {255, 255, 255})), {.grayscale = true}).pixels,
              ElementsAre(255));
  expect_near(decode(jpeg_file(flat_pixels(8, 8, {200, 100, 50})), {.grayscale = true}), {124}, 2);
}

TEST(DecodeImage, MakesColourFromGray) {
  EXPECT_THAT(decode(png_file(flat_pixels(1, 2, {9}))).pixels, ElementsAre(9, 9, 9, 9, 9, 9));
}

// The picture as it is seen: bright at the upper left, by rows 0 1 / 2 3 / 4 5.
struct Orientation {
  int number;
  std::uint32_t height, width;
  std::vector<unsigned> stored;  // which of the six seen blocks lies where in the file
};
class Oriented : public testing::TestWithParam<Orientation> {};

TEST_P(Oriented, IsTurnedUpright) {
  constexpr unsigned kBlock = 16;
  const Orientation& seen = GetParam();
  const Pixels pixels =
      make_pixels(seen.height * kBlock, seen.width * kBlock, 1, [&](unsigned y, unsigned x, unsigned) {
        return 40 * seen.stored[y / kBlock * seen.width + x / kBlock];
      });
  for (const bool big_endian : {false, true}) {
    const std::string file = with_orientation(jpeg_file(pixels), seen.number, big_endian);
    const Image image = decode(file, {.grayscale = true});
    ASSERT_EQ(image.size, (ImageSize{3 * kBlock, 2 * kBlock}));
    for (unsigned block = 0; block < 6; ++block) {
      const std::size_t at =
          (block / 2 * kBlock + kBlock / 2) * image.size.width + block % 2 * kBlock + kBlock / 2;
      EXPECT_NEAR(image.pixels[at], 40 * block, 3) << "block " << block;
    }
    // The size that is asked for is that of the picture as it is seen.
    const Image small = decode(file, {.grayscale = true, .resize = ImageSize{6, 4}});
    ASSERT_EQ(small.size, (ImageSize{6, 4}));
    EXPECT_NEAR(small.pixels[5 * 4 + 3], 200, 12);
    EXPECT_NEAR(small.pixels[0], 0, 12);
  }
}

// What is seen at each place for orientations 1 to 8, after EXIF's definition of the 0th row and column.
INSTANTIATE_TEST_SUITE_P(
    Exif, Oriented,
    testing::Values(Orientation{1, 3, 2, {0, 1, 2, 3, 4, 5}}, Orientation{2, 3, 2, {1, 0, 3, 2, 5, 4}},
                    Orientation{3, 3, 2, {5, 4, 3, 2, 1, 0}}, Orientation{4, 3, 2, {4, 5, 2, 3, 0, 1}},
                    Orientation{5, 2, 3, {0, 2, 4, 1, 3, 5}}, Orientation{6, 2, 3, {1, 3, 5, 0, 2, 4}},
                    Orientation{7, 2, 3, {5, 3, 1, 4, 2, 0}}, Orientation{8, 2, 3, {4, 2, 0, 5, 3, 1}}),
    [](const auto& parameter) { return "Number" + std::to_string(parameter.param.number); });

TEST(DecodeImage, ResizesJpegAlikeAtEveryScaleOfTheDecoder) {
  // A slope of 0 to 255 in each direction: what is read at the middle of each pixel does not depend on the
  // scale.
  for (const unsigned size : {64u, 130u, 260u, 520u}) {
    const Pixels pixels = make_pixels(
        size, size, 1, [&](unsigned y, unsigned x, unsigned) { return 127 * y / size + 127 * x / size; });
    const Image image = decode(jpeg_file(pixels), {.grayscale = true, .resize = ImageSize{16, 16}});
    ASSERT_EQ(image.size, (ImageSize{16, 16}));
    for (unsigned y = 1; y < 15; ++y) {
      for (unsigned x = 1; x < 15; ++x) {
        EXPECT_NEAR(image.pixels[y * 16 + x], 127 * (y + x + 1) / 16, 3) << size << ": " << y << ", " << x;
      }
    }
  }
}

TEST(StartsImage, GoesByContent) {
  const std::string png = png_file(flat_pixels(1, 1, {1, 2, 3}));
  const auto bytes = std::span(reinterpret_cast<const std::uint8_t*>(png.data()), png.size());
  EXPECT_TRUE(starts_image(bytes.first(16)));
  EXPECT_FALSE(starts_image(std::span(reinterpret_cast<const std::uint8_t*>("BMW is a car maker"), 18)));
}

#ifdef SWEEP_WEBP
TEST(DecodeImage, ReadsWebp) {
  const Pixels pixels = colours(5, 7);
  std::uint8_t* memory = nullptr;
  const std::size_t size = WebPEncodeLosslessRGB(pixels.values.data(), 7, 5, 7 * 3, &memory);
  const std::string file(reinterpret_cast<const char*>(memory), size);
  WebPFree(memory);
  EXPECT_EQ(decode(file).pixels, planes(pixels));
  EXPECT_THROW(decode(file.substr(0, file.size() / 2)), DataError);
}
#else
TEST(DecodeImage, SaysThatItWasBuiltWithoutWebp) {
  EXPECT_EQ(test::message_of<DataError>([] { decode("RIFF....WEBPVP8L"); }),
            "FILE: is a WebP image, which this build cannot read: it was built without libwebp");
}
#endif

}  // namespace sweep::image_file_test
