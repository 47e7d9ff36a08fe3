// PNG through libspng.
#include <spng.h>

#include <memory>
#include <new>

#include "core/data/readers/images/pixel_sink.h"

namespace sweep {
namespace {

// No deflate stream expands more than this (zlib's technical notes: 1032:1).
constexpr std::uint64_t kLargestExpansion = 1032;
// Limit for text, profiles and EXIF data, decompressed.
constexpr std::size_t kMaxChunkBytes = 16 << 20;

void check(int result, const PixelSink& sink) {
  if (result == SPNG_EMEM) throw std::bad_alloc();
  if (result != 0) sink.fail(std::string("the PNG data is damaged: ") + spng_strerror(result));
}

int orientation(spng_ctx* context) {
  spng_exif exif{};
  if (spng_get_exif(context, &exif) != 0) return 1;
  return exif_orientation(std::span(reinterpret_cast<const std::uint8_t*>(exif.data), exif.length));
}

}  // namespace

void decode_png(std::span<const std::uint8_t> file, PixelSink& sink) {
  const std::unique_ptr<spng_ctx, void (*)(spng_ctx*)> context(spng_ctx_new(0), spng_ctx_free);
  if (!context) throw std::bad_alloc();
  check(spng_set_chunk_limits(context.get(), kMaxChunkBytes, 2 * kMaxChunkBytes), sink);
  check(spng_set_png_buffer(context.get(), file.data(), file.size()), sink);
  spng_ihdr header{};
  check(spng_get_ihdr(context.get(), &header), sink);
  sink.check_size(header.height, header.width);
  if (std::uint64_t{header.height} * header.width * header.bit_depth / 8 >
      kLargestExpansion * std::uint64_t{file.size()}) {
    sink.fail("is too short for an image of " + std::to_string(header.width) + " x " +
              std::to_string(header.height) + " pixels");
  }

  const bool gray = header.color_type == SPNG_COLOR_TYPE_GRAYSCALE && header.bit_depth <= 8;
  const auto format = gray ? SPNG_FMT_G8 : SPNG_FMT_RGB8;
  const std::size_t channels = gray ? 1 : 3;
  const std::size_t row_bytes = channels * header.width;
  sink.begin({header.height, header.width}, channels, orientation(context.get()));
  if (header.interlace_method != 0) {
    std::vector<std::uint8_t> pixels(row_bytes * header.height);
    check(spng_decode_image(context.get(), pixels.data(), pixels.size(), format, 0), sink);
    for (std::size_t y = 0; y < header.height; ++y) {
      sink.add_row(std::span(pixels).subspan(y * row_bytes, row_bytes));
    }
    return;
  }
  check(spng_decode_image(context.get(), nullptr, 0, format, SPNG_DECODE_PROGRESSIVE), sink);
  std::vector<std::uint8_t> row(row_bytes);
  for (std::size_t y = 0; y < header.height; ++y) {
    const int result = spng_decode_row(context.get(), row.data(), row.size());
    // The last row comes with SPNG_EOI.
    if (result != SPNG_EOI || y + 1 < header.height) check(result, sink);
    sink.add_row(row);
  }
}

}  // namespace sweep
