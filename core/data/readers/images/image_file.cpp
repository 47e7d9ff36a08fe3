#include "core/data/readers/images/image_file.h"

#include <cstring>
#include <string_view>

#include "core/data/readers/images/pixel_sink.h"

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
  void (*decode)(std::span<const std::uint8_t> file, PixelSink& sink);
};

constexpr ImageFormat kFormats[] = {{is_jpeg, decode_jpeg}, {is_png, decode_png}, {is_webp, decode_webp}};

// Formats that are recognised only to be refused by name.
constexpr struct {
  std::string_view magic;
  const char* name;
} kUnsupported[] = {{"GIF8"sv, "a GIF file"}, {"II*\0"sv, "a TIFF file"}, {"MM\0*"sv, "a TIFF file"},
                    {"%PDF"sv, "a PDF file"}, {"BM"sv, "a BMP file"},     {"P5"sv, "a PGM file"},
                    {"P6"sv, "a PPM file"}};

}  // namespace

bool starts_image(std::span<const std::uint8_t> start) {
  for (const ImageFormat& format : kFormats) {
    if (format.recognise(start)) return true;
  }
  return false;
}

std::string image_formats() { return can_decode_webp() ? "JPEG, PNG, WebP" : "JPEG, PNG"; }

Image decode_image(std::span<const std::uint8_t> file, const ImageOptions& options, const std::string& name) {
  PixelSink sink(options, name);
  if (file.empty()) sink.fail("is empty, expected an image");
  for (const ImageFormat& format : kFormats) {
    if (!format.recognise(file)) continue;
    format.decode(file, sink);
    return sink.take_image();
  }
  for (const auto& [magic, kind] : kUnsupported) {
    if (starts_with(file, magic)) sink.fail(std::string("is ") + kind + "; allowed: " + image_formats());
  }
  sink.fail("is not an image; allowed: " + image_formats());
}

}  // namespace sweep
