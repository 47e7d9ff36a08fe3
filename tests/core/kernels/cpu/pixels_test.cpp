#include "core/kernels/cpu/kernels/sample_kernels.h"

#include "tests/support/test.h"

namespace sweep::cpu::pixels_test {

TEST(LoadPixels, ConvertsEveryByteExactly) {
  // 256 + 3 pixels: all byte values, and a tail that is shorter than 16.
  constexpr std::size_t kPixels = 259;
  std::vector<std::vector<std::uint8_t>> images(kLanes, std::vector<std::uint8_t>(kPixels));
  const std::uint8_t* pointers[kLanes];
  for (std::size_t image = 0; image < kLanes; ++image) {
    for (std::size_t i = 0; i < kPixels; ++i)
      images[image][i] = static_cast<std::uint8_t>(i * 7 + image * 13);
    pointers[image] = images[image].data();
  }
  AlignedBuffer out(kPixels * kLanes);
  load_pixels(pointers, kPixels, out.data());
  for (std::size_t i = 0; i < kPixels; ++i) {
    for (std::size_t image = 0; image < kLanes; ++image) {
      ASSERT_EQ(out.data()[i * kLanes + image], static_cast<float>(images[image][i]) / 255.0f)
          << i << " " << image;
    }
  }
}

}  // namespace sweep::cpu::pixels_test
