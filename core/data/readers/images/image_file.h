// Decodes image files: JPEG, PNG and, if the library was found, WebP.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sweep {

struct ImageSize {
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  friend bool operator==(const ImageSize&, const ImageSize&) = default;
};

struct ImageOptions {
  bool grayscale = false;  // one channel instead of three
  /// The size of the result; the aspect ratio is not kept. See resized() for the formula.
  std::optional<ImageSize> resize{};
};

struct Image {
  ImageSize size;
  std::size_t channels = 0;          // 1 or 3: red, green, blue
  std::vector<std::uint8_t> pixels;  // [channels, height, width]
};

/// Images with more pixels are refused: 2^26, which is 8192 x 8192.
inline constexpr std::uint64_t kMaxPixels = std::uint64_t{1} << 26;
/// Image files with more bytes are refused.
inline constexpr std::uint64_t kMaxImageBytes = std::uint64_t{256} << 20;

/// Decodes an image file. The format follows from the content, not the name. Conversions:
/// - EXIF's orientation is applied, of PNG files if they have it before the pixels.
/// - Colour to gray: (19595 R + 38470 G + 7471 B + 32768) / 65536, rounded down, as in PIL. In JPEG files the
///   luminance is used as it is. Gray to colour: three equal channels.
/// - CMYK and YCCK JPEG: R = C K / 255, and so on, if Adobe's marker says that the inks are
///   inverted, otherwise R = (255 - C)(255 - K) / 255.
/// - 16-bit PNG: the upper 8 bits.
/// - Alpha is dropped, palettes are looked up, colour profiles are ignored.
/// - With `resize`, JPEG is decoded at 1/2, 1/4 or 1/8 of its size if that leaves at least twice the
///   height and width of the result. This is several times as fast.
/// Throws DataError, starting with `name`, if the file is damaged, cut short, animated, of another format or
/// too large. Memory is taken only for what the file can hold: at most the whole image. Thread-safe.
Image decode_image(std::span<const std::uint8_t> file, const ImageOptions& options, const std::string& name);

/// Whether `start`, at least the first 12 bytes of a file, looks like an image that decode_image() knows.
bool starts_image(std::string_view start);

/// "JPEG, PNG, WebP": what this build can decode.
std::string image_formats();

}  // namespace sweep
