// The bytes of image files, made by writers that share nothing with the readers under test.
#pragma once

#include "tests/support/data_files.h"

// After <cstdio>, which it needs.
#include <jpeglib.h>
#include <spng.h>

namespace sweep::test {

/// Interleaved pixels.
struct Pixels {
  std::uint32_t height = 0, width = 0, channels = 3;
  std::vector<std::uint8_t> values;
};

/// Pixels whose value at (y, x, channel) is value(y, x, channel).
inline Pixels make_pixels(std::uint32_t height, std::uint32_t width, std::uint32_t channels,
                          const std::function<unsigned(unsigned, unsigned, unsigned)>& value) {
  Pixels pixels = {height, width, channels, {}};
  for (unsigned y = 0; y < height; ++y) {
    for (unsigned x = 0; x < width; ++x) {
      for (unsigned c = 0; c < channels; ++c)
        pixels.values.push_back(static_cast<std::uint8_t>(value(y, x, c)));
    }
  }
  return pixels;
}

/// All pixels have the colour given, one value per channel.
inline Pixels flat_pixels(std::uint32_t height, std::uint32_t width,
                          const std::vector<std::uint8_t>& colour) {
  return make_pixels(height, width, static_cast<std::uint32_t>(colour.size()),
                     [&](unsigned, unsigned, unsigned c) { return colour[c]; });
}

struct JpegOptions {
  bool progressive = false;
  bool adobe_inks = false;  // with four channels: CMYK as Adobe stores it, with its marker
  int quality = 95;
};

/// A JPEG file of 1, 3 or 4 (CMYK) channels. Colours are not subsampled.
inline std::string jpeg_file(const Pixels& pixels, const JpegOptions& options = {}) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  errors.error_exit = [](j_common_ptr) { std::abort(); };
  jpeg_create_compress(&info);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &memory, &size);
  info.image_height = pixels.height;
  info.image_width = pixels.width;
  info.input_components = static_cast<int>(pixels.channels);
  info.in_color_space = pixels.channels == 1 ? JCS_GRAYSCALE : pixels.channels == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, options.quality, TRUE);
  for (int c = 0; c < info.num_components; ++c)
    info.comp_info[c].h_samp_factor = info.comp_info[c].v_samp_factor = 1;
  if (options.progressive) jpeg_simple_progression(&info);
  info.write_Adobe_marker = options.adobe_inks ? TRUE : FALSE;
  jpeg_start_compress(&info, TRUE);
  for (unsigned y = 0; y < pixels.height; ++y) {
    auto* row =
        const_cast<std::uint8_t*>(pixels.values.data()) + std::size_t{y} * pixels.width * pixels.channels;
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  std::string file(reinterpret_cast<const char*>(memory), size);
  jpeg_destroy_compress(&info);
  std::free(memory);
  return file;
}

/// EXIF data that says `orientation`, in the byte order given, as a number of 16 bits or, `long_number`, 32.
inline std::string exif_data(int orientation, bool highest_first = false, bool long_number = false) {
  const auto& number = highest_first ? big_endian : little_endian;
  return std::string("Exif\0\0", 6) + (highest_first ? "MM" : "II") + number(42, 2) + number(8, 4) +
         number(1, 2) + number(0x112, 2) + number(long_number ? 4 : 3, 2) + number(1, 4) +
         number(static_cast<unsigned>(orientation), long_number ? 4 : 2) + number(0, long_number ? 0 : 2) +
         number(0, 4);
}

/// `jpeg` with EXIF data.
inline std::string with_orientation(const std::string& jpeg, int orientation, bool highest_first = false) {
  const std::string data = exif_data(orientation, highest_first);
  return jpeg.substr(0, 2) + "\xff\xe1" + big_endian(data.size() + 2, 2) + data + jpeg.substr(2);
}

struct PngOptions {
  std::uint8_t bits = 8;
  bool interlaced = false;
};

/// A PNG file of 1 (gray), 3 or 4 (with alpha) channels; with 16 bits each value stands for value * 257.
inline std::string png_file(const Pixels& pixels, const PngOptions& options = {}) {
  spng_ctx* context = spng_ctx_new(SPNG_CTX_ENCODER);
  spng_set_option(context, SPNG_ENCODE_TO_BUFFER, 1);
  spng_ihdr header{};
  header.width = pixels.width;
  header.height = pixels.height;
  header.bit_depth = options.bits;
  header.color_type = static_cast<std::uint8_t>(pixels.channels == 1   ? SPNG_COLOR_TYPE_GRAYSCALE
                                                : pixels.channels == 3 ? SPNG_COLOR_TYPE_TRUECOLOR
                                                                       : SPNG_COLOR_TYPE_TRUECOLOR_ALPHA);
  header.interlace_method = options.interlaced ? 1 : 0;
  spng_set_ihdr(context, &header);
  std::vector<std::uint8_t> values;
  for (const std::uint8_t value : pixels.values) values.insert(values.end(), options.bits / 8u, value);
  int result = spng_encode_image(context, values.data(), values.size(), SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE);
  std::size_t size = 0;
  void* memory = result == 0 ? spng_get_png_buffer(context, &size, &result) : nullptr;
  if (result != 0) throw std::runtime_error(spng_strerror(result));
  std::string file(static_cast<const char*>(memory), size);
  std::free(memory);
  spng_ctx_free(context);
  return file;
}

/// A chunk of a PNG file.
inline std::string png_chunk(const std::string& type, const std::string& content) {
  const std::string body = type + content;
  const auto crc = crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  return big_endian(content.size(), 4) + body + big_endian(crc, 4);
}

/// A PNG file of one chunk of data, which may be anything. `colour`: 0 for gray, 2 for colours.
inline std::string png_with(std::uint32_t width, std::uint32_t height, unsigned bits, unsigned colour,
                            const std::string& deflated) {
  return "\x89PNG\r\n\x1a\n" +
         png_chunk("IHDR", big_endian(width, 4) + big_endian(height, 4) + big_endian(bits, 1) +
                               big_endian(colour, 1) + std::string(3, '\0')) +
         png_chunk("IDAT", deflated) + png_chunk("IEND", "");
}

}  // namespace sweep::test
