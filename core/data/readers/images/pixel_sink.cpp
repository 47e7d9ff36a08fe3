#include "core/data/readers/images/pixel_sink.h"

#include <utility>

#include "core/base/error.h"

namespace sweep {
namespace {

// Orientations 5 to 8 swap rows and columns.
bool is_transposed(int orientation) { return orientation >= 5; }

std::uint8_t luma(const std::uint8_t* rgb) {
  return static_cast<std::uint8_t>((19595u * rgb[0] + 38470u * rgb[1] + 7471u * rgb[2] + 32768u) >> 16);
}

// Position in the stored image of the pixel that is seen at (y, x): table of orientations in
// EXIF 2.32, 4.6.4.
std::pair<std::size_t, std::size_t> stored_position(int orientation, std::size_t y, std::size_t x,
                                                    ImageSize stored) {
  const std::size_t bottom = stored.height - 1, right = stored.width - 1;
  switch (orientation) {
    case 2:
      return {y, right - x};
    case 3:
      return {bottom - y, right - x};
    case 4:
      return {bottom - y, x};
    case 5:
      return {x, y};
    case 6:
      return {bottom - x, y};
    case 7:
      return {bottom - x, right - y};
    case 8:
      return {x, right - y};
    default:
      return {y, x};
  }
}

// Numbers of `bytes` bytes at `at`, in the order that the file says; 0 beyond the end.
std::uint32_t tiff_number(std::span<const std::uint8_t> data, std::size_t at, std::size_t bytes,
                          bool big_endian) {
  if (at > data.size() || data.size() - at < bytes) return 0;
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    const std::size_t shift = 8 * (big_endian ? bytes - 1 - i : i);
    value |= std::uint32_t{data[at + i]} << shift;
  }
  return value;
}

}  // namespace

// TIFF 6.0, section 2: byte order, 42, offset of the first directory, which is a count and 12 bytes per
// entry: tag, type, count, value.
int exif_orientation(std::span<const std::uint8_t> tiff) {
  constexpr std::uint32_t kOrientationTag = 0x0112, kShortType = 3;
  constexpr std::size_t kHeaderBytes = 8, kEntryBytes = 12;
  if (tiff.size() < kHeaderBytes || tiff[0] != tiff[1] || (tiff[0] != 'I' && tiff[0] != 'M')) return 1;
  const bool big_endian = tiff[0] == 'M';
  if (tiff_number(tiff, 2, 2, big_endian) != 42) return 1;
  const std::size_t directory = tiff_number(tiff, 4, 4, big_endian);
  const std::size_t entries = tiff_number(tiff, directory, 2, big_endian);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t entry = directory + 2 + i * kEntryBytes;
    if (entry + kEntryBytes > tiff.size()) return 1;
    if (tiff_number(tiff, entry, 2, big_endian) != kOrientationTag) continue;
    if (tiff_number(tiff, entry + 2, 2, big_endian) != kShortType) return 1;
    const std::uint32_t orientation = tiff_number(tiff, entry + 8, 2, big_endian);
    return orientation >= 1 && orientation <= 8 ? static_cast<int>(orientation) : 1;
  }
  return 1;
}

PixelSink::PixelSink(const ImageOptions& options, std::string name)
    : options_(options), name_(std::move(name)) {}

void PixelSink::fail(const std::string& problem) const { throw DataError(name_ + ": " + problem); }

void PixelSink::check_size(std::uint64_t height, std::uint64_t width) const {
  const std::string size = std::to_string(width) + " x " + std::to_string(height) + " pixels";
  if (height == 0 || width == 0) fail("the image has " + size);
  if (height > kMaxPixels || width > kMaxPixels || height * width > kMaxPixels) {
    fail("the image has " + size + "; at most " + std::to_string(kMaxPixels) + " pixels are allowed");
  }
}

std::optional<ImageSize> PixelSink::stored_target(const std::optional<ImageSize>& resize, int orientation) {
  if (!resize || !is_transposed(orientation)) return resize;
  return ImageSize{resize->width, resize->height};
}

void PixelSink::begin(ImageSize size, std::size_t channels, int orientation) {
  check_size(size.height, size.width);
  channels_in_ = channels;
  channels_ = options_.grayscale ? 1 : channels;
  if (channels_ != channels_in_) gray_.resize(size.width);
  orientation_ = orientation;
  const std::optional<ImageSize> target = stored_target(options_.resize, orientation);
  size_ = target.value_or(size);
  if (size_ != size) {
    resizer_.emplace(size, size_, channels_);
  } else {
    pixels_.reserve(std::size_t{size.height} * size.width * channels_);
  }
}

void PixelSink::add_row(std::span<const std::uint8_t> row) {
  if (channels_ != channels_in_) {
    for (std::size_t x = 0; x < gray_.size(); ++x) gray_[x] = luma(row.data() + 3 * x);
    row = gray_;
  }
  if (resizer_) {
    resizer_->add_row(row);
  } else {
    pixels_.insert(pixels_.end(), row.begin(), row.end());
  }
}

Image PixelSink::take_image() {
  if (resizer_) pixels_ = resizer_->take_result();
  Image image;
  image.size = is_transposed(orientation_) ? ImageSize{size_.width, size_.height} : size_;
  image.channels = options_.grayscale ? 1 : 3;
  if (image.channels == 1 && orientation_ == 1) {
    image.pixels = std::move(pixels_);
    return image;
  }
  const std::size_t plane = std::size_t{size_.height} * size_.width;
  image.pixels.resize(image.channels * plane);
  std::size_t i = 0;
  for (std::size_t y = 0; y < image.size.height; ++y) {
    for (std::size_t x = 0; x < image.size.width; ++x, ++i) {
      const auto [stored_y, stored_x] = stored_position(orientation_, y, x, size_);
      const std::uint8_t* pixel = pixels_.data() + (stored_y * size_.width + stored_x) * channels_;
      for (std::size_t c = 0; c < image.channels; ++c) {
        image.pixels[c * plane + i] = pixel[channels_ == 1 ? 0 : c];
      }
    }
  }
  return image;
}

}  // namespace sweep
