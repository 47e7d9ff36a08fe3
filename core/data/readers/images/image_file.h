// Decodes image files: JPEG, PNG and, if the library was found, WebP.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/readers/input_file.h"

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
/// - EXIF's orientation is applied.
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

// For the decoders of each format, and for what resizes their pixels.

/// An image file that is to be decoded.
struct EncodedImage {
  std::span<const std::uint8_t> bytes;
  const ImageOptions& options;
  const std::string& name;  // starts every message about the image

  /// Throws DataError for an image without pixels, or with more than kMaxPixels. To be called before memory
  /// is taken for anything that depends on the size.
  void check_size(std::uint64_t height, std::uint64_t width) const;
};

/// How much of an image's last row and column lies beyond its edge: less than a pixel, if a decoder that
/// shrinks by a whole number has filled them up.
struct Overhang {
  double height = 0, width = 0;
};

/// The pixels of an image as the file has them.
struct StoredImage {
  ImageSize size;
  std::size_t channels = 0;            // 1 or 3
  std::vector<std::uint8_t> pixels{};  // [height, width, channels]
  int orientation = 1;                 // EXIF's, 1 to 8
  Overhang overhang{};
};

/// The size that a stored image is resized to before it is turned: `resize`, or its transpose.
std::optional<ImageSize> stored_target(const std::optional<ImageSize>& resize, int orientation);

/// The orientation, 1 to 8, in `tiff`, the TIFF structure of EXIF data without the leading "Exif\0\0": 1 is
/// upright, 6 and 8 are turned by 90 degrees. 1 also if there is none, or if the data is damaged, which
/// leaves the image itself whole.
int exif_orientation(std::span<const std::uint8_t> tiff);

// The decoders, each for the files whose first bytes it has been chosen by. They throw DataError.
StoredImage decode_jpeg(const EncodedImage& file);
StoredImage decode_png(const EncodedImage& file);
StoredImage decode_webp(const EncodedImage& file);
/// False if this build has no library for WebP; then decode_webp() always throws.
bool can_decode_webp();

/// Returns `pixels`, [from.height, from.width, channels], as [to.height, to.width, channels]. All extents are
/// at least 1. The filter is the triangle of PIL's and torchvision's "bilinear" with antialiasing. With scale
/// = (in - overhang) / out and radius = max(scale, 1), output pixel i is the mean of the input pixels j,
/// weighted by
///   max(0, 1 - |j + 0.5 - (i + 0.5) * scale| / radius),
/// in each direction. An equal size leaves the image as it is. Sums are in float, rounded to the nearest once
/// at the end, where PIL rounds after each direction: results differ from PIL's by at most one or two.
std::vector<std::uint8_t> resized(std::span<const std::uint8_t> pixels, ImageSize from, ImageSize to,
                                  std::size_t channels, const Overhang& overhang = {});

}  // namespace sweep
