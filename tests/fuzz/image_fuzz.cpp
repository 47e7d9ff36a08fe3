// Fuzz target: any bytes are an image or give a DataError. The first byte chooses the options.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "core/base/error.h"
#include "core/data/readers/images/image_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  sweep::ImageOptions options;
  options.grayscale = (data[0] & 1) != 0;
  if ((data[0] & 2) != 0) options.resize = sweep::ImageSize{7, 5};
  try {
    const sweep::Image image = sweep::decode_image(std::span(data + 1, size - 1), options, "FILE");
    if (image.channels != (options.grayscale ? 1 : 3) || (options.resize && image.size != *options.resize) ||
        image.pixels.size() != image.channels * image.size.height * image.size.width ||
        image.pixels.empty()) {
      std::abort();
    }
  } catch (const sweep::DataError&) {
  }
  return 0;
}
