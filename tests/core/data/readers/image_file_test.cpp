// Image files: each format gives its pixels, converted as image_file.h says.
#include "core/data/readers/images/image_file.h"

#include <ctime>

#include "tests/support/image_files.h"

#ifdef SWEEP_WEBP
#include <webp/encode.h>
#endif

namespace sweep::image_file_test {

using test::exif_data, test::flat_pixels, test::jpeg_file, test::little_endian, test::make_pixels,
    test::Pixels, test::png_file, test::with_orientation;

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

#ifdef SWEEP_WEBP
// A WebP file of colours, without loss.
std::string webp_file(const Pixels& pixels) {
  std::uint8_t* memory = nullptr;
  const std::size_t size =
      WebPEncodeLosslessRGB(pixels.values.data(), static_cast<int>(pixels.width),
                            static_cast<int>(pixels.height), static_cast<int>(pixels.width * 3), &memory);
  const std::string file(reinterpret_cast<const char*>(memory), size);
  WebPFree(memory);
  return file;
}

// The same in the extended format, with EXIF data after the picture.
std::string webp_with(const std::string& exif, const Pixels& pixels) {
  const auto chunk = [](const std::string& name, const std::string& data) {
    return name + little_endian(data.size(), 4) + data + std::string(data.size() % 2, '\0');
  };
  const std::string start =
      "\x08" + little_endian(0, 3) + little_endian(pixels.width - 1, 3) + little_endian(pixels.height - 1, 3);
  const std::string chunks =
      "WEBP" + chunk("VP8X", start) + webp_file(pixels).substr(12) + chunk("EXIF", exif);
  return "RIFF" + little_endian(chunks.size(), 4) + chunks;
}
#endif

// Every pixel differs from its neighbours in each channel.
Pixels colours(std::uint32_t height, std::uint32_t width) {
  return make_pixels(height, width, 3,
                     [](unsigned y, unsigned x, unsigned c) { return 30 * y + 7 * x + 90 * c; });
}

TEST(DecodeImage, GivesThePixelsOfAFileWithoutLoss) {
  const Pixels pixels = colours(9, 11);
  const Pixels gray = make_pixels(2, 2, 1, [](unsigned y, unsigned x, unsigned) { return 100 * y + x; });
  const std::vector<std::tuple<const char*, std::string, bool, std::vector<std::uint8_t>>> rows = {
      {"PNG", png_file(pixels), false, planes(pixels)},
      {"interlaced", png_file(pixels, {.interlaced = true}), false, planes(pixels)},
      {"the upper bits of 16", png_file(pixels, {.bits = 16}), false, planes(pixels)},
      {"the upper bits of 16, gray", png_file(gray, {.bits = 16}), true, gray.values},
      {"without alpha", png_file(flat_pixels(1, 1, {10, 20, 30, 0})), false, {10, 20, 30}},
      {"colour from gray", png_file(flat_pixels(1, 2, {9})), false, {9, 9, 9, 9, 9, 9}},
#ifdef SWEEP_WEBP
      {"WebP", webp_file(pixels), false, planes(pixels)},
#endif
      {"gray as PIL makes it of red", png_file(flat_pixels(1, 1, {255, 0, 0})), true, {76}},
      {"of green", png_file(flat_pixels(1, 1, {0, 255, 0})), true, {150}},
      {"of blue", png_file(flat_pixels(1, 1, {0, 0, 255})), true, {29}},
      {"of white", png_file(flat_pixels(1, 1, {255, 255, 255})), true, {255}}};
  for (const auto& [what, file, grayscale, expected] : rows) {
    const Image image = decode(file, {.grayscale = grayscale});
    EXPECT_EQ(image.channels, grayscale ? 1u : 3u) << what;
    EXPECT_EQ(image.pixels, expected) << what;
  }
  EXPECT_EQ(decode(png_file(pixels)).size, (ImageSize{9, 11}));
}

TEST(DecodeImage, GivesThePixelsOfJpegNearly) {
  const Pixels flat = flat_pixels(20, 30, {200, 100, 50});
  // Inks of half cyan, no magenta, full yellow, a fifth black.
  const Pixels inverted_inks = flat_pixels(16, 16, {127, 255, 0, 204}),
               inks = flat_pixels(16, 16, {128, 0, 255, 51});
  const std::vector<std::tuple<std::string, bool, std::vector<int>, int>> rows = {
      {jpeg_file(flat), false, {200, 100, 50}, 3},
      {jpeg_file(flat, {.progressive = true}), false, {200, 100, 50}, 3},
      {jpeg_file(flat), true, {124}, 2},
      {jpeg_file(flat_pixels(20, 30, {77})), false, {77, 77, 77}, 1},
      {jpeg_file(inverted_inks, {.adobe_inks = true}), false, {102, 204, 0}, 3},
      {jpeg_file(inks), false, {102, 204, 0}, 3}};
  for (const auto& [file, grayscale, colour, tolerance] : rows) {
    const Image image = decode(file, {.grayscale = grayscale});
    ASSERT_EQ(image.channels, colour.size());
    const std::size_t plane = image.pixels.size() / image.channels;
    for (std::size_t i = 0; i < image.pixels.size(); ++i)
      ASSERT_NEAR(image.pixels[i], colour[i / plane], tolerance) << "at " << i;
  }
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
      make_pixels(seen.height * kBlock, seen.width * kBlock, 3, [&](unsigned y, unsigned x, unsigned) {
        return 40 * seen.stored[y / kBlock * seen.width + x / kBlock];
      });
  std::vector<std::string> files;
  for (const bool big_endian : {false, true}) {
    files.push_back(with_orientation(jpeg_file(pixels), seen.number, big_endian));
    const std::string exif = exif_data(seen.number, big_endian),
                      long_exif = exif_data(seen.number, big_endian, true), png = png_file(pixels);
    for (const std::size_t place : {png.find("IDAT") - 4, png.find("IEND") - 4}) {
      for (const std::string& data : {exif, long_exif})
        files.push_back(std::string(png).insert(place, test::png_chunk("eXIf", data.substr(6))));
    }
#ifdef SWEEP_WEBP
    files.insert(files.end(), {webp_with(exif, pixels), webp_with(exif.substr(6), pixels)});
#endif
  }
  for (const std::string& file : files) {
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
  for (const unsigned size : {64u, 130u, 257u, 260u, 520u}) {
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
  EXPECT_TRUE(starts_image(png.substr(0, 16)));
  EXPECT_FALSE(starts_image("BMW is a car maker"));
}

// Damaged, huge and foreign image files: one clear message each, quickly and without much memory.

std::string error_of(const std::string& file) {
  // Processor time, which other programs on the machine do not change.
  const std::clock_t before = std::clock();
  std::string message = message_of<DataError>([&] {
    decode(file, {.grayscale = false, .resize = ImageSize{8, 8}});
  });
  EXPECT_LT(std::clock() - before, CLOCKS_PER_SEC);
  EXPECT_THAT(message, StartsWith("FILE: "));
  EXPECT_THAT(message, Not(HasSubstr("\n")));
  return message;
}

std::string noisy_jpeg(bool progressive = false) {
  return jpeg_file(make_pixels(60, 80, 3, [](unsigned y, unsigned x, unsigned c) { return y * x * (c + 3); }),
                   {.progressive = progressive});
}

std::string png_of_size(std::uint32_t width, std::uint32_t height) {
  return test::png_with(width, height, 8, 2, "\x78\x9c\x03");
}

// Sets the size in the frame header of a JPEG file.
std::string jpeg_of_size(std::string jpeg, unsigned width, unsigned height) {
  const std::size_t at = jpeg.find("\xff\xc0");
  jpeg[at + 5] = static_cast<char>(height >> 8);
  jpeg[at + 6] = static_cast<char>(height);
  jpeg[at + 7] = static_cast<char>(width >> 8);
  jpeg[at + 8] = static_cast<char>(width);
  return jpeg;
}

TEST(MalformedImage, IsRefused) {
  // A progressive image whose first scan is sent again and again.
  const std::string progressive = noisy_jpeg(true);
  const std::size_t first = progressive.find("\xff\xda"), second = progressive.find("\xff\xc4", first);
  std::string bomb = progressive.substr(0, second);
  for (int i = 0; i < 200; ++i) bomb += progressive.substr(first, second - first);
  bomb += progressive.substr(second);
  const std::vector<std::pair<std::string, const char*>> rows = {
      {"GIF89a......", "is a GIF file; allowed: JPEG"},
      {"BM......", "is a BMP file; allowed: JPEG"},
      {std::string("II*\0....", 8), "is a TIFF file"},
      {jpeg_of_size(noisy_jpeg(), 0, 60), "the JPEG data is damaged"},
      {png_of_size(0, 4), "the PNG data is damaged"},
      {png_of_size(20000, 20000), "has 20000 x 20000 pixels; at most 67108864 pixels are allowed"},
      {jpeg_of_size(noisy_jpeg(), 20000, 20000), "has 20000 x 20000 pixels; at most"},
      {png_of_size(8000, 8000), "is too short for an image of 8000 x 8000 pixels"},
      {jpeg_of_size(noisy_jpeg(), 8000, 8000), "is too short for an image"},
#ifdef SWEEP_WEBP
      {webp_file(colours(5, 7)).substr(0, 40), "the WebP data is damaged"},
#else
      {"RIFF....WEBPVP8L", "which this build cannot read: it was built without libwebp"},
#endif
      {bomb, "the JPEG data is damaged"}};
  for (const auto& [file, message] : rows) EXPECT_THAT(error_of(file), HasSubstr(message));
}

// Resizing gives what the formula of resized() says.

std::vector<double> weights(std::uint32_t from, std::uint32_t to, std::uint32_t i) {
  const double scale = static_cast<double>(from) / to, radius = std::max(scale, 1.0);
  std::vector<double> all;
  double sum = 0;
  for (std::uint32_t j = 0; j < from; ++j) {
    all.push_back(std::max(0.0, 1 - std::abs(j + 0.5 - (i + 0.5) * scale) / radius));
    sum += all.back();
  }
  for (double& weight : all) weight /= sum;
  return all;
}

double value_at(const Pixels& pixels, ImageSize to, std::uint32_t y, std::uint32_t x, std::uint32_t c) {
  const std::vector<double> rows = weights(pixels.height, to.height, y),
                            columns = weights(pixels.width, to.width, x);
  double value = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t j = 0; j < columns.size(); ++j) {
      value += rows[i] * columns[j] * pixels.values[(i * pixels.width + j) * pixels.channels + c];
    }
  }
  return value;
}

struct Sizes {
  ImageSize from, to;
};
class ResizeTo : public testing::TestWithParam<Sizes> {};

TEST_P(ResizeTo, FollowsTheFormula) {
  const auto [from, to] = GetParam();
  for (const std::uint32_t channels : {1u, 3u}) {
    const Pixels pixels = make_pixels(
        from.height, from.width, channels,
        [](unsigned y, unsigned x, unsigned c) { return (y * 7919 + x * 104729 + c * 31) % 256; });
    const std::vector<std::uint8_t> result = resized(pixels.values, from, to, channels);
    ASSERT_EQ(result.size(), std::size_t{to.height} * to.width * channels);
    for (std::uint32_t y = 0, i = 0; y < to.height; ++y) {
      for (std::uint32_t x = 0; x < to.width; ++x) {
        for (std::uint32_t c = 0; c < channels; ++c, ++i) {
          EXPECT_NEAR(result[i], value_at(pixels, to, y, x, c), 0.51) << y << ", " << x << ", " << c;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, ResizeTo,
                         testing::Values(Sizes{{1, 1}, {3, 2}}, Sizes{{7, 5}, {7, 5}},
                                         Sizes{{20, 30}, {5, 10}}, Sizes{{20, 30}, {7, 11}},
                                         Sizes{{5, 4}, {9, 13}}, Sizes{{3, 40}, {12, 6}},
                                         Sizes{{33, 2}, {8, 2}}, Sizes{{2, 2}, {1, 1}}));

}  // namespace sweep::image_file_test
