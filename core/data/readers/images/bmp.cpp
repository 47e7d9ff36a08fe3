// BMP without compression: 1, 4 and 8 bits with a palette, 24 and 32 bits.
#include <array>

#include "core/data/readers/images/pixel_sink.h"

namespace sweep {
namespace {

constexpr std::size_t kFileHeaderBytes = 14;
constexpr std::uint32_t kUncompressed = 0, kBitFields = 3;

std::uint32_t little_endian(std::span<const std::uint8_t> file, std::size_t at, std::size_t bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) value |= std::uint32_t{file[at + i]} << (8 * i);
  return value;
}

struct BmpHeader {
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  bool top_down = false;
  std::uint32_t bits = 0;  // per pixel
  std::uint32_t compression = kUncompressed;
  std::size_t palette = 0;        // offset
  std::size_t palette_entry = 4;  // bytes: blue, green, red, and one that is not used
  std::size_t palette_size = 0;
  std::size_t pixels = 0;                          // offset
  std::array<std::size_t, 3> colours = {2, 1, 0};  // bytes of red, green and blue in a pixel of 24 or 32 bits
};

BmpHeader read_header(std::span<const std::uint8_t> file, const PixelSink& sink) {
  BmpHeader header;
  const std::size_t info_bytes = little_endian(file, kFileHeaderBytes, 4);
  header.pixels = little_endian(file, 10, 4);
  const bool os2 = info_bytes == 12;
  if (!os2 && (info_bytes < 40 || info_bytes > 124)) {
    sink.fail("is not a BMP file: its header has " + std::to_string(info_bytes) + " bytes");
  }
  header.palette = kFileHeaderBytes + info_bytes;
  if (file.size() < header.palette || file.size() < header.pixels) sink.fail("is cut short in the header");
  if (os2) {
    header.width = little_endian(file, 18, 2);
    header.height = little_endian(file, 20, 2);
    header.bits = little_endian(file, 24, 2);
    header.palette_entry = 3;
  } else {
    const auto height = static_cast<std::int32_t>(little_endian(file, 22, 4));
    const auto width = static_cast<std::int32_t>(little_endian(file, 18, 4));
    header.top_down = height < 0;
    header.height =
        header.top_down ? 0 - static_cast<std::uint32_t>(height) : static_cast<std::uint32_t>(height);
    header.width = width < 0 ? 0 : static_cast<std::uint32_t>(width);
    header.bits = little_endian(file, 28, 2);
    header.compression = little_endian(file, 30, 4);
    header.palette_size = little_endian(file, 46, 4);
  }
  if (header.compression == kBitFields && header.bits == 32) {
    // Behind a header of 40 bytes, or part of a longer one: at the same offset.
    constexpr std::size_t kMasks = kFileHeaderBytes + 40;
    if (file.size() < kMasks + 12) sink.fail("is cut short in the header");
    for (std::size_t c = 0; c < 3; ++c) {
      const std::uint32_t mask = little_endian(file, kMasks + 4 * c, 4);
      std::size_t byte = 0;
      while (byte < 4 && mask != 0xffu << (8 * byte)) ++byte;
      if (byte == 4) sink.fail("its colours are not whole bytes of a pixel, which is not supported");
      header.colours[c] = byte;
    }
  } else if (header.compression != kUncompressed) {
    sink.fail("is a compressed BMP file; only uncompressed ones are read");
  }
  if (header.bits <= 8) {
    const std::size_t most = std::size_t{1} << header.bits;
    if (header.palette_size == 0 || header.palette_size > most) header.palette_size = most;
    if (header.palette + header.palette_size * header.palette_entry > file.size()) {
      sink.fail("is cut short in the palette");
    }
  }
  return header;
}

}  // namespace

void decode_bmp(std::span<const std::uint8_t> file, PixelSink& sink) {
  if (file.size() < kFileHeaderBytes + 12) sink.fail("is cut short in the header");
  const std::uint32_t info_bytes = little_endian(file, kFileHeaderBytes, 4);
  if (file.size() < kFileHeaderBytes + std::uint64_t{info_bytes}) sink.fail("is cut short in the header");
  const BmpHeader header = read_header(file, sink);
  sink.check_size(header.height, header.width);
  if (header.bits != 1 && header.bits != 4 && header.bits != 8 && header.bits != 24 && header.bits != 32) {
    sink.fail("has " + std::to_string(header.bits) + " bits per pixel; allowed: 1, 4, 8, 24, 32");
  }
  // Rows are filled up to whole words of 32 bits.
  const std::uint64_t row_bytes = (std::uint64_t{header.width} * header.bits + 31) / 32 * 4;
  if (row_bytes * header.height > file.size() - header.pixels) {
    sink.fail("is cut short: " + std::to_string(header.width) + " x " + std::to_string(header.height) +
              " pixels need " + std::to_string(row_bytes * header.height) + " bytes, " +
              std::to_string(file.size() - header.pixels) + " are there");
  }

  sink.begin({header.height, header.width}, 3, 1);
  std::vector<std::uint8_t> row(std::size_t{header.width} * 3);
  for (std::uint32_t y = 0; y < header.height; ++y) {
    const std::uint64_t stored_y = header.top_down ? y : header.height - 1 - y;
    const std::uint8_t* in = file.data() + header.pixels + stored_y * row_bytes;
    for (std::size_t x = 0; x < header.width; ++x) {
      const std::uint8_t* pixel = in + x * (header.bits / 8);
      std::array<std::size_t, 3> colours = header.colours;
      if (header.bits <= 8) {
        const std::size_t bit = x * header.bits;
        const std::size_t index =
            (in[bit / 8] >> (8 - header.bits - bit % 8)) & ((std::size_t{1} << header.bits) - 1);
        if (index >= header.palette_size) sink.fail("holds a colour that is not in the palette");
        pixel = file.data() + header.palette + index * header.palette_entry;
        colours = {2, 1, 0};
      }
      for (std::size_t c = 0; c < 3; ++c) row[3 * x + c] = pixel[colours[c]];
    }
    sink.add_row(row);
  }
}

}  // namespace sweep
