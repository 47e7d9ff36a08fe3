// The factors of dropout, next to the function whose random integers decide.

#include "core/base/random.h"
#include "core/kernels/cpu/kernels/layer_kernels.h"
#include "tests/core/kernels/cpu/simd_targets.h"
#include "tests/support/test.h"

namespace sweep::cpu::dropout_test {

TEST(Dropout, DrawsWithPhiloxOnEveryInstructionSet) {
  constexpr std::size_t kElements = 4 * 61 + 3;
  const DropoutDraw draw{{1234567890, 4000000000}, 48, 77, 3U << 24 | 5, 1610612736, 1.6f};
  std::vector<float> expected;
  for (std::size_t element = 0; element < kElements; ++element) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const auto random =
          philox4x32({static_cast<std::uint32_t>(element / 4),
                      draw.first_image + static_cast<std::uint32_t>(lane), draw.step, draw.use},
                     draw.key);
      expected.push_back(random[element % 4] < draw.threshold ? 0.0f : draw.kept);
    }
  }
  test::for_each_simd_target([&](const std::string& target) {
    SCOPED_TRACE(target);
    AlignedBuffer factors(kElements * kLanes);
    dropout_factors(draw, kElements, factors.data());
    EXPECT_TRUE(std::ranges::equal(std::span(factors.data(), factors.size()), expected));
  });
}

}  // namespace sweep::cpu::dropout_test
