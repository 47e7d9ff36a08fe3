#include "core/data/readers/images/image_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/base/error.h"

namespace sweep {
namespace {

using namespace std::string_view_literals;

bool starts_with(std::span<const std::uint8_t> file, std::string_view magic) {
  return file.size() >= magic.size() && std::memcmp(file.data(), magic.data(), magic.size()) == 0;
}

bool is_jpeg(std::span<const std::uint8_t> file) { return starts_with(file, "\xff\xd8\xff"sv); }
bool is_png(std::span<const std::uint8_t> file) { return starts_with(file, "\x89PNG\r\n\x1a\n"sv); }
bool is_webp(std::span<const std::uint8_t> file) {
  return starts_with(file, "RIFF"sv) && file.size() >= 12 && starts_with(file.subspan(8), "WEBP"sv);
}
struct ImageFormat {
  bool (*recognise)(std::span<const std::uint8_t> file);
  StoredImage (*decode)(const EncodedImage& file);
};

constexpr ImageFormat kDecoders[] = {{is_jpeg, decode_jpeg}, {is_png, decode_png}, {is_webp, decode_webp}};

// Formats that are recognised only to be refused by name.
constexpr struct {
  std::string_view magic;
  const char* name;
} kUnsupported[] = {{"GIF8"sv, "a GIF file"}, {"II*\0"sv, "a TIFF file"}, {"MM\0*"sv, "a TIFF file"},
                    {"%PDF"sv, "a PDF file"}, {"BM"sv, "a BMP file"},     {"P5"sv, "a PGM file"},
                    {"P6"sv, "a PPM file"}};

// Orientations 5 to 8 swap rows and columns.
bool is_transposed(int orientation) { return orientation >= 5; }

std::uint8_t luma(const std::uint8_t* rgb) {
  return static_cast<std::uint8_t>((19595u * rgb[0] + 38470u * rgb[1] + 7471u * rgb[2] + 32768u) >> 16);
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

// `stored` as the options ask for it: [channels, height, width], upright.
Image finished(StoredImage stored, const ImageOptions& options) {
  if (options.grayscale && stored.channels == 3) {
    const std::size_t count = stored.pixels.size() / 3;
    for (std::size_t i = 0; i < count; ++i) stored.pixels[i] = luma(&stored.pixels[3 * i]);
    stored.pixels.resize(count);
    stored.channels = 1;
  }
  const ImageSize size = stored_target(options.resize, stored.orientation).value_or(stored.size);
  if (size != stored.size)
    stored.pixels = resized(stored.pixels, stored.size, size, stored.channels, stored.overhang);
  Image image;
  image.size = is_transposed(stored.orientation) ? ImageSize{size.width, size.height} : size;
  image.channels = options.grayscale ? 1 : 3;
  if (image.channels == 1 && stored.orientation == 1) {
    image.pixels = std::move(stored.pixels);
    return image;
  }
  const std::size_t plane = std::size_t{size.height} * size.width;
  image.pixels.resize(image.channels * plane);
  // Where the first pixel that is seen lies, and the steps to the next ones: table of orientations in
  // EXIF 2.32, 4.6.4.
  auto right = static_cast<std::ptrdiff_t>(stored.channels);
  std::ptrdiff_t down = right * size.width, first = 0;
  if (std::ranges::count(std::array{3, 4, 6, 7}, stored.orientation) > 0) {
    first += down * (size.height - std::ptrdiff_t{1});
    down = -down;
  }
  if (std::ranges::count(std::array{2, 3, 7, 8}, stored.orientation) > 0) {
    first += right * (size.width - std::ptrdiff_t{1});
    right = -right;
  }
  if (is_transposed(stored.orientation)) std::swap(right, down);
  std::size_t i = 0;
  for (std::ptrdiff_t y = 0; y < image.size.height; ++y) {
    for (std::ptrdiff_t x = 0; x < image.size.width; ++x, ++i) {
      const std::uint8_t* pixel = stored.pixels.data() + first + y * down + x * right;
      for (std::size_t c = 0; c < image.channels; ++c)
        image.pixels[c * plane + i] = pixel[stored.channels == 1 ? 0 : c];
    }
  }
  return image;
}

}  // namespace

// TIFF 6.0, section 2: byte order, 42, offset of the first directory, which is a count and 12 bytes per
// entry: tag, type, count, value.
int exif_orientation(std::span<const std::uint8_t> tiff) {
  constexpr std::uint32_t kOrientationTag = 0x0112, kShort = 3, kLong = 4;
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
    const std::uint32_t type = tiff_number(tiff, entry + 2, 2, big_endian);
    if (type != kShort && type != kLong) return 1;  // Some writers use the latter.
    const std::uint32_t orientation = tiff_number(tiff, entry + 8, type == kShort ? 2 : 4, big_endian);
    return orientation >= 1 && orientation <= 8 ? static_cast<int>(orientation) : 1;
  }
  return 1;
}

std::optional<ImageSize> stored_target(const std::optional<ImageSize>& resize, int orientation) {
  if (!resize || !is_transposed(orientation)) return resize;
  return ImageSize{resize->width, resize->height};
}

void EncodedImage::check_size(std::uint64_t height, std::uint64_t width) const {
  if (height == 0 || width == 0) refuse(name, "the image has {} x {} pixels", width, height);
  if (height > kMaxPixels || width > kMaxPixels || height * width > kMaxPixels) {
    refuse(name, "the image has {} x {} pixels; at most {} pixels are allowed", width, height, kMaxPixels);
  }
}

bool starts_image(std::string_view start) {
  const std::span bytes(reinterpret_cast<const std::uint8_t*>(start.data()), start.size());
  return std::ranges::any_of(kDecoders, [&](const ImageFormat& row) { return row.recognise(bytes); });
}

std::string image_formats() { return can_decode_webp() ? "JPEG, PNG, WebP" : "JPEG, PNG"; }

Image decode_image(std::span<const std::uint8_t> file, const ImageOptions& options, const std::string& name) {
  const EncodedImage encoded{file, options, name};
  if (file.empty()) refuse(name, "is empty, expected an image");
  for (const ImageFormat& format : kDecoders)
    if (format.recognise(file)) return finished(format.decode(encoded), options);
  for (const auto& [magic, kind] : kUnsupported)
    if (starts_with(file, magic)) refuse(name, "is {}; allowed: {}", kind, image_formats());
  refuse(name, "is not an image; allowed: {}", image_formats());
}

}  // namespace sweep
