// JPEG through libjpeg-turbo.
//
// libjpeg reports errors by a function that must not return. It is C: exceptions may not pass through it, so
// it jumps. setjmp() stands in small functions around single calls of the library, without objects that a
// jump would leave behind; everything else is C++ as usual.
#include <csetjmp>
#include <cstddef>
#include <cstdio>
// After <cstdio>, which it needs.
#include <jpeglib.h>
// After <jpeglib.h>, whose version decides the numbers of messages.
#include <jerror.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <utility>

#include "core/data/readers/images/image_file.h"

namespace sweep {
namespace {

// A progressive image takes time for each scan, however few bytes that has: a cheap way to keep a reader
// busy. Usual files have about ten scans.
constexpr int kMaxScans = 64;
// The coefficients of a progressive image: 2 bytes for each of 3 components at kMaxPixels, and some more.
constexpr long kMaxLibraryBytes = 448L << 20;
constexpr std::size_t kBlock = 8;  // of the cosine transform

class JpegFile {
 public:
  explicit JpegFile(std::span<const std::uint8_t> file) : file_(file) {
    info_.err = jpeg_std_error(&errors_.base);
    errors_.base.error_exit = [](j_common_ptr info) { jump(info); };
    errors_.base.emit_message = on_message;
    progress_.progress_monitor = on_progress;
  }
  JpegFile(const JpegFile&) = delete;
  JpegFile& operator=(const JpegFile&) = delete;
  ~JpegFile() { jpeg_destroy_decompress(&info_); }

  // Each returns false after an error; then message() says which.
  bool read_header() {
    if (setjmp(errors_.target) != 0) return false;
    jpeg_create_decompress(&info_);
    info_.mem->max_memory_to_use = kMaxLibraryBytes;
    info_.progress = &progress_;
    jpeg_mem_src(&info_, file_.data(), static_cast<unsigned long>(file_.size()));
    jpeg_save_markers(&info_, JPEG_APP0 + 1, 0xffff);
    jpeg_read_header(&info_, TRUE);
    return true;
  }
  bool start() {
    if (setjmp(errors_.target) != 0) return false;
    jpeg_start_decompress(&info_);
    return true;
  }
  // Reads all rows, and up to the end marker: without it the file is cut short.
  bool read_rows(std::uint8_t* rows) {
    if (setjmp(errors_.target) != 0) return false;
    while (info_.output_scanline < info_.output_height) {
      std::uint8_t* row = rows + std::size_t{info_.output_scanline} * info_.output_width *
                                     static_cast<std::size_t>(info_.output_components);
      jpeg_read_scanlines(&info_, &row, 1);
    }
    jpeg_finish_decompress(&info_);
    return true;
  }

  jpeg_decompress_struct& info() { return info_; }
  int orientation() const {
    static constexpr char kExif[] = "Exif\0";  // with the array's own 0: "Exif\0\0"
    for (const jpeg_marker_struct* marker = info_.marker_list; marker != nullptr; marker = marker->next) {
      const std::span data(marker->data, marker->data_length);
      if (data.size() >= sizeof kExif && std::memcmp(data.data(), kExif, sizeof kExif) == 0) {
        return exif_orientation(data.subspan(sizeof kExif));
      }
    }
    return 1;
  }
  const char* message() const { return errors_.message.data(); }
  bool out_of_memory() const { return errors_.base.msg_code == JERR_OUT_OF_MEMORY; }

 private:
  struct Errors {
    jpeg_error_mgr base;  // first, so that info_.err points to all of it
    std::jmp_buf target;
    std::array<char, JMSG_LENGTH_MAX> message;
  };

  [[noreturn]] static void jump(j_common_ptr info) {
    auto* errors = reinterpret_cast<Errors*>(info->err);
    info->err->format_message(info, errors->message.data());
    std::longjmp(errors->target, 1);
  }

  // Warnings, level -1, are errors where pixels are missing or invented. Others are harmless and common:
  // superfluous bytes between markers, for example.
  static void on_message(j_common_ptr info, int level) {
    if (level >= 0) return;
    switch (info->err->msg_code) {
      case JWRN_JPEG_EOF:
      case JWRN_HIT_MARKER:
      case JWRN_HUFF_BAD_CODE:
        jump(info);
      default:
        return;
    }
  }

  static void on_progress(j_common_ptr info) {
    const auto* decompress = reinterpret_cast<const jpeg_decompress_struct*>(info);
    if (decompress->input_scan_number <= kMaxScans) return;
    auto* errors = reinterpret_cast<Errors*>(info->err);
    std::snprintf(errors->message.data(), errors->message.size(), "more than %d scans", kMaxScans);
    std::longjmp(errors->target, 1);
  }

  std::span<const std::uint8_t> file_;
  jpeg_decompress_struct info_{};
  jpeg_progress_mgr progress_{};
  Errors errors_{};
};

[[noreturn]] void fail(const JpegFile& jpeg, const EncodedImage& file) {
  if (jpeg.out_of_memory()) throw std::bad_alloc();
  refuse(file.name, "the JPEG data is damaged: {}", jpeg.message());
}

// The denominator of the scale to decode at: the largest that leaves twice the wanted size, so that the
// filter of the resizer, not the one of the cosine transform, decides how the result looks.
unsigned scale_denominator(ImageSize size, const std::optional<ImageSize>& wanted) {
  if (!wanted) return 1;
  for (const unsigned denominator : {8u, 4u, 2u}) {
    if (size.height / denominator >= 2 * std::uint64_t{wanted->height} &&
        size.width / denominator >= 2 * std::uint64_t{wanted->width}) {
      return denominator;
    }
  }
  return 1;
}

// In place: four inks per pixel become three colours.
void inks_to_colours(std::vector<std::uint8_t>& pixels, bool inverted) {
  const unsigned flip = inverted ? 0 : 255;
  for (std::size_t i = 0, o = 0; i < pixels.size(); i += 4, o += 3) {
    const unsigned black = pixels[i + 3] ^ flip;
    for (std::size_t c = 0; c < 3; ++c)
      pixels[o + c] = static_cast<std::uint8_t>(((pixels[i + c] ^ flip) * black + 127) / 255);
  }
  pixels.resize(pixels.size() / 4 * 3);
}

}  // namespace

StoredImage decode_jpeg(const EncodedImage& file) {
  JpegFile jpeg(file.bytes);
  if (!jpeg.read_header()) fail(jpeg, file);
  jpeg_decompress_struct& info = jpeg.info();
  file.check_size(info.image_height, info.image_width);
  // Huffman codes need a bit for each block at least.
  const std::uint64_t blocks =
      std::uint64_t{(info.image_height + kBlock - 1) / kBlock} * ((info.image_width + kBlock - 1) / kBlock);
  if (!info.arith_code && blocks > 8 * std::uint64_t{file.bytes.size()}) {
    refuse(file.name, "is too short for an image of {} x {} pixels", info.image_width, info.image_height);
  }

  const int orientation = jpeg.orientation();
  const bool inks = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
  if (inks) {
    info.out_color_space = JCS_CMYK;
  } else if (info.jpeg_color_space == JCS_GRAYSCALE ||
             (file.options.grayscale && info.jpeg_color_space == JCS_YCbCr)) {
    info.out_color_space = JCS_GRAYSCALE;
  } else {
    info.out_color_space = JCS_RGB;
  }
  info.scale_num = 1;
  info.scale_denom = scale_denominator({info.image_height, info.image_width},
                                       stored_target(file.options.resize, orientation));
  if (!jpeg.start()) fail(jpeg, file);

  const auto components = static_cast<std::size_t>(info.output_components);
  std::vector<std::uint8_t> pixels(std::size_t{info.output_height} * info.output_width * components);
  if (!jpeg.read_rows(pixels.data())) fail(jpeg, file);
  if (inks) inks_to_colours(pixels, info.saw_Adobe_marker);
  const auto beyond = [&](JDIMENSION rows, JDIMENSION of_file) {
    return rows - static_cast<double>(of_file) / info.scale_denom;
  };
  return {.size = {info.output_height, info.output_width},
          .channels = inks ? 3 : components,
          .pixels = std::move(pixels),
          .orientation = orientation,
          .overhang = {beyond(info.output_height, info.image_height),
                       beyond(info.output_width, info.image_width)}};
}

}  // namespace sweep
