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
// "BM" alone begins many a text: the size of the second header, at offset 14, is checked, too.
bool is_bmp(std::span<const std::uint8_t> file) {
  return starts_with(file, "BM"sv) && file.size() > 17 && file[15] == 0 && file[16] == 0 && file[17] == 0;
}
bool is_netpbm(std::span<const std::uint8_t> file) {
  return file.size() > 2 && file[0] == 'P' && std::strchr("2356", file[1]) != nullptr && file[1] != 0 &&
         (file[2] == '#' || std::strchr(" \t\r\n", file[2]) != nullptr) && file[2] != 0;
}

struct ImageFormat {
  bool (*recognise)(std::span<const std::uint8_t> file);
  void (*decode)(std::span<const std::uint8_t> file, PixelSink& sink);
};

constexpr ImageFormat kFormats[] = {{is_jpeg, decode_jpeg},
                                    {is_png, decode_png},
                                    {is_bmp, decode_bmp},
                                    {is_netpbm, decode_netpbm},
                                    {is_webp, decode_webp}};

// Formats that are recognised only to be refused by name.
constexpr struct {
  std::string_view magic;
  const char* name;
} kUnsupported[] = {{"GIF8"sv, "a GIF file"}, {"II*\0"sv, "a TIFF file"}, {"MM\0*"sv, "a TIFF file"},
                    {"%PDF"sv, "a PDF file"}, {"P1"sv, "a PBM file"},     {"P4"sv, "a PBM file"},
                    {"P7"sv, "a PAM file"}};

}  // namespace

bool starts_image(std::span<const std::uint8_t> start) {
  for (const ImageFormat& format : kFormats) {
    if (format.recognise(start)) return true;
  }
  return false;
}

std::string image_formats() {
  return std::string("JPEG, PNG, BMP, PGM, PPM") + (can_decode_webp() ? ", WebP" : "");
}

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
