// How the fused convolutions read: layouts in shared memory, and pixels.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "core/kernels/cuda/kernels/conv_pool_weight_gradient.h"
#include "core/kernels/cuda/kernels/pixel_value.h"
#include "tests/core/kernels/cuda/kernels/conv_pool_shapes.h"

namespace sweep::cuda {
namespace {

TEST(ConvPoolLayout, KernelRowsOfAWarpAreInDifferentBanks) {
  for (const auto& [channels, size, kernel, pad] : std::vector<std::array<int, 4>>{
           {1, 28, 5, 0}, {6, 12, 5, 0}, {8, 14, 3, 1}, {16, 7, 3, 0}, {5, 9, 2, 2}, {40, 6, 1, 0}}) {
    const ConvPoolShape s =
        test::conv_pool_shape(channels, {size, size}, 1, {kernel, kernel}, {pad, pad}, false);
    const PaddedImage image = weight_gradient_image(s);
    std::set<int> banks;
    const int rows = std::min(s.in_channels * s.kernel_height, kWarpThreads);
    for (int row = 0; row < rows; ++row)
      banks.insert((row / s.kernel_height * image.plane_stride + row % s.kernel_height * image.row_stride) %
                   kBanks);
    EXPECT_EQ(static_cast<int>(banks.size()), rows) << channels << " channels";
  }
}

TEST(PixelValue, OfEveryByteIsTheQuotient) {
  for (std::uint32_t byte = 0; byte < 256; ++byte)
    EXPECT_EQ(BatchSample::value_of(byte, false, 0, {}), static_cast<float>(byte) / 255.0f) << byte;
}

}  // namespace
}  // namespace sweep::cuda
