// Damaged, huge and foreign image files: one clear message each, quickly and without much memory.

#include <ctime>

#include "core/data/readers/images/image_file.h"
#include "tests/support/image_files.h"
#include "tests/support/test.h"

namespace sweep::malformed_image_test {

using test::jpeg_file, test::little_endian, test::make_pixels;

Image decode(const std::string& file) {
  return decode_image(std::span(reinterpret_cast<const std::uint8_t*>(file.data()), file.size()),
                      {.grayscale = false, .resize = ImageSize{8, 8}}, "FILE");
}

std::string error_of(const std::string& file) {
  // Processor time, which other programs on the machine do not change.
  const std::clock_t before = std::clock();
  std::string message = message_of<DataError>([&] { decode(file); });
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

TEST(MalformedImage, NamesFormatsThatItDoesNotRead) {
  EXPECT_THAT(error_of("GIF89a......"), HasSubstr("is a GIF file; allowed: JPEG"));
  EXPECT_THAT(error_of("BM......"), HasSubstr("is a BMP file; allowed: JPEG"));
  EXPECT_THAT(error_of(std::string("II*\0....", 8)), HasSubstr("is a TIFF file"));
}

TEST(MalformedImage, RefusesImagesWithoutPixels) {
  EXPECT_THAT(error_of(jpeg_of_size(noisy_jpeg(), 0, 60)), HasSubstr("the JPEG data is damaged"));
  EXPECT_THAT(error_of(png_of_size(0, 4)), HasSubstr("the PNG data is damaged"));
}

TEST(MalformedImage, RefusesHugeImages) {
  EXPECT_THAT(error_of(png_of_size(20000, 20000)),
              HasSubstr("has 20000 x 20000 pixels; at most 67108864 pixels are allowed"));
  EXPECT_THAT(error_of(jpeg_of_size(noisy_jpeg(), 20000, 20000)),
              HasSubstr("has 20000 x 20000 pixels; at most"));
}

TEST(MalformedImage, RefusesSizesThatTheFileCannotHold) {
  EXPECT_THAT(error_of(png_of_size(8000, 8000)),
              HasSubstr("is too short for an image of 8000 x 8000 pixels"));
  EXPECT_THAT(error_of(jpeg_of_size(noisy_jpeg(), 8000, 8000)), HasSubstr("is too short for an image"));
}

TEST(MalformedImage, RefusesJpegBombs) {
  // A progressive image whose first scan is sent again and again.
  const std::string file = noisy_jpeg(true);
  const std::size_t first = file.find("\xff\xda"), second = file.find("\xff\xc4", first);
  std::string bomb = file.substr(0, second);
  for (int i = 0; i < 200; ++i) bomb += file.substr(first, second - first);
  bomb += file.substr(second);
  EXPECT_THAT(error_of(bomb), HasSubstr("the JPEG data is damaged"));
}

}  // namespace sweep::malformed_image_test
