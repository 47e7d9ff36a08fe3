// libspng with zlib's fastest level and without filters, which only cost time here: a grid of 64 (242x242)
// takes 0.33 ms instead of 0.47 ms, 32 captioned pictures (half a megapixel) 1.5 ms instead of 2.0 ms and are
// smaller.
#include <spng.h>
#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

#include "tbwriter/error.h"
#include "tbwriter/pixel.h"

namespace sweep::tbwriter {
namespace {

void check(int error) {
  if (error == SPNG_EMEM) throw std::bad_alloc();
  if (error != 0) throw UsageError(std::string("cannot encode a PNG: ") + spng_strerror(error));
}

spng_plte plte(std::span<const Color> palette) {
  spng_plte chunk{};
  chunk.n_entries = static_cast<std::uint32_t>(palette.size());
  std::ranges::transform(palette, chunk.entries, [](const Color& color) {
    return spng_plte_entry{color[0], color[1], color[2], 255};
  });
  return chunk;
}

}  // namespace

std::string encode_png(std::span<const std::uint8_t> pixels, ImageSize size, PngContent content,
                       std::span<const Color> palette) {
  constexpr std::uint8_t kColorTypes[] = {SPNG_COLOR_TYPE_GRAYSCALE, SPNG_COLOR_TYPE_GRAYSCALE_ALPHA,
                                          SPNG_COLOR_TYPE_TRUECOLOR, SPNG_COLOR_TYPE_TRUECOLOR_ALPHA};
  constexpr std::uint8_t kIndexed = SPNG_COLOR_TYPE_INDEXED;
  const std::unique_ptr<spng_ctx, decltype(&spng_ctx_free)> context(spng_ctx_new(SPNG_CTX_ENCODER),
                                                                    &spng_ctx_free);
  if (!context) throw std::bad_alloc();
  spng_ihdr header{};
  header.width = static_cast<std::uint32_t>(size.width);
  header.height = static_cast<std::uint32_t>(size.height);
  header.bit_depth = 8;
  header.color_type = palette.empty() ? kColorTypes[size.channels - 1] : kIndexed;
  check(spng_set_ihdr(context.get(), &header));
  if (!palette.empty()) {
    spng_plte chunk = plte(palette);
    check(spng_set_plte(context.get(), &chunk));
  }
  for (const auto& [option, value] :
       {std::pair{SPNG_ENCODE_TO_BUFFER, 1},
        {SPNG_IMG_COMPRESSION_LEVEL, 1},
        {SPNG_IMG_COMPRESSION_STRATEGY, content == PngContent::kPhotographs ? Z_RLE : Z_DEFAULT_STRATEGY},
        {SPNG_FILTER_CHOICE, SPNG_DISABLE_FILTERING}})
    check(spng_set_option(context.get(), option, value));
  check(spng_encode_image(context.get(), pixels.data(), pixels.size(), SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE));
  std::size_t bytes = 0;
  int error = 0;
  const std::unique_ptr<void, decltype(&std::free)> file(spng_get_png_buffer(context.get(), &bytes, &error),
                                                         &std::free);
  check(error);
  return {static_cast<const char*>(file.get()), bytes};
}

}  // namespace sweep::tbwriter
