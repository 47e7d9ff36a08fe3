// The decoders of image files, and the sink they write pixels to. Private to core/data/readers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/data/readers/images/image_file.h"
#include "core/data/readers/images/image_resize.h"

namespace sweep {

/// Takes the rows of one image from the top, and makes of them what the options ask for, on the way: resized
/// and in gray, so that a large image is never in memory as a whole. Not thread-safe.
class PixelSink {
 public:
  PixelSink(const ImageOptions& options, std::string name);

  /// Starts every message about the image.
  const std::string& name() const { return name_; }
  const ImageOptions& options() const { return options_; }

  /// Throws DataError, with `problem` after the name.
  [[noreturn]] void fail(const std::string& problem) const;

  /// Throws DataError for an image without pixels, or with more than kMaxPixels. To be called before memory
  /// is taken for anything that depends on the size.
  void check_size(std::uint64_t height, std::uint64_t width) const;

  /// The size that rows have to be resized to before they are turned: options().resize, or its transpose.
  static std::optional<ImageSize> stored_target(const std::optional<ImageSize>& resize, int orientation);

  /// Rows of `size` follow, `channels` (1 or 3) interleaved values per pixel. `orientation` is EXIF's, 1
  /// to 8.
  void begin(ImageSize size, std::size_t channels, int orientation);
  void add_row(std::span<const std::uint8_t> row);

  /// The image, after the last row.
  Image take_image();

 private:
  const ImageOptions& options_;
  std::string name_;
  std::size_t channels_in_ = 0;  // of the rows
  std::size_t channels_ = 0;     // that are kept
  int orientation_ = 1;
  ImageSize size_;                  // of what is kept, before it is turned
  std::vector<std::uint8_t> gray_;  // one row, if colours are to become gray
  std::optional<RowResizer> resizer_;
  std::vector<std::uint8_t> pixels_;  // [height, width, channels], without a resizer
};

/// The orientation, 1 to 8, in `tiff`, the TIFF structure of EXIF data without the leading "Exif\0\0": 1 is
/// upright, 6 and 8 are turned by 90 degrees. 1 also if there is none, or if the data is damaged, which
/// leaves the image itself whole.
int exif_orientation(std::span<const std::uint8_t> tiff);

// The decoders: each reads `file`, whose first bytes it has been chosen by, into `sink`. They
// throw DataError.
void decode_jpeg(std::span<const std::uint8_t> file, PixelSink& sink);
void decode_png(std::span<const std::uint8_t> file, PixelSink& sink);
void decode_webp(std::span<const std::uint8_t> file, PixelSink& sink);
/// False if this build has no library for WebP; then decode_webp() always throws.
bool can_decode_webp();

}  // namespace sweep
