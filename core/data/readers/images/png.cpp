// PNG through libspng.
#include <spng.h>

#include <memory>
#include <new>
#include <utility>

#include "core/data/readers/images/image_file.h"

namespace sweep {
namespace {

// Limit for text, profiles and EXIF data, decompressed.
constexpr std::size_t kMaxChunkBytes = 16 << 20;

void check(int result, const EncodedImage& file) {
  if (result == SPNG_EMEM) throw std::bad_alloc();
  if (result != 0) refuse(file.name, "the PNG data is damaged: {}", spng_strerror(result));
}

// As the chunks say that have been read so far.
int orientation(spng_ctx* context) {
  spng_exif exif{};
  if (spng_get_exif(context, &exif) != 0) return 1;
  return exif_orientation(std::span(reinterpret_cast<const std::uint8_t*>(exif.data), exif.length));
}

}  // namespace

StoredImage decode_png(const EncodedImage& file) {
  const std::unique_ptr<spng_ctx, void (*)(spng_ctx*)> context(spng_ctx_new(0), spng_ctx_free);
  if (!context) throw std::bad_alloc();
  check(spng_set_chunk_limits(context.get(), kMaxChunkBytes, 2 * kMaxChunkBytes), file);
  check(spng_set_png_buffer(context.get(), file.bytes.data(), file.bytes.size()), file);
  spng_ihdr header{};
  check(spng_get_ihdr(context.get(), &header), file);
  file.check_size(header.height, header.width);
  if (std::uint64_t{header.height} * header.width * header.bit_depth / 8 >
      kDeflateExpansion * std::uint64_t{file.bytes.size()}) {
    refuse(file.name, "is too short for an image of {} x {} pixels", header.width, header.height);
  }
  const bool gray = header.color_type == SPNG_COLOR_TYPE_GRAYSCALE && header.bit_depth <= 8;
  const std::size_t channels = gray ? 1 : 3;
  int turned = orientation(context.get());
  std::vector<std::uint8_t> pixels(channels * header.width * header.height);
  check(spng_decode_image(context.get(), pixels.data(), pixels.size(), gray ? SPNG_FMT_G8 : SPNG_FMT_RGB8, 0),
        file);
  if (turned == 1 && spng_decode_chunks(context.get()) == 0) turned = orientation(context.get());
  return {{header.height, header.width}, channels, std::move(pixels), turned};
}

}  // namespace sweep
