// Winograd's convolution along rows with pooling, against naive sums in double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "core/kernels/cpu/kernels/winograd/winograd_rows.h"
#include "tests/core/kernels/cpu/random_values.h"
#include "tests/core/kernels/cpu/simd_targets.h"

namespace sweep::cpu {
namespace {

using test::random_values;

struct Case {
  std::size_t in, out, kernel_height, kernel_width, height, width;  // of the input
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.in << "x" << c.height << "x" << c.width << " to " << c.out << ", kernel " << c.kernel_height
       << "x" << c.kernel_width;
}

struct Pooled {
  AlignedBuffer values, argmax;
};

// A convolution of one block with random values.
class Convolution {
 public:
  explicit Convolution(const Case& c)
      : g_{c.in,
           c.height,
           c.width,
           c.out,
           c.height - c.kernel_height + 1,
           c.width - c.kernel_width + 1,
           c.kernel_height,
           c.kernel_width,
           1,
           1,
           1,
           1,
           conflict_free_stride(c.height * c.width) * kLanes},
        input_(random_values(c.in * g_.in_plane, 1)),
        weights_(random_values(c.in * c.out * g_.taps(), 2)),
        bias_(random_values(c.out, 3)) {}

  const ConvGeometry& geometry() const { return g_; }
  std::size_t rows() const { return g_.out_height / 2; }
  std::size_t columns() const { return g_.out_width / 2; }
  AlignedBuffer& input() { return input_; }

  Pooled run(bool relu) const {
    AlignedBuffer transformed(winograd_rows_weight_floats(g_)), scratch(winograd_rows_scratch_floats(g_));
    // Results must not depend on the contents of scratch memory.
    std::fill_n(scratch.data(), scratch.size(), std::numeric_limits<float>::quiet_NaN());
    winograd_rows_transform_weights(g_, weights_.data(), transformed.data());
    const std::size_t count = g_.out_channels * rows() * columns() * kLanes;
    Pooled pooled{AlignedBuffer(count), AlignedBuffer(count)};
    winograd_rows_pool_forward(g_, input_.data(), transformed.data(), bias_.data(), relu,
                               pooled.values.data(), pooled.argmax.data(), scratch.data());
    return pooled;
  }

  // The convolution's output before ReLU and pooling.
  double reference(std::size_t channel, std::size_t y, std::size_t x, std::size_t image) const {
    double sum = static_cast<double>(bias_.data()[channel]);
    for (std::size_t tap = 0; tap < g_.taps(); ++tap) {
      const std::size_t pixel = (y + tap / g_.kernel_width) * g_.in_width + x + tap % g_.kernel_width;
      for (std::size_t in = 0; in < g_.in_channels; ++in) {
        sum += static_cast<double>(weights_.data()[(channel * g_.taps() + tap) * g_.in_channels + in]) *
               static_cast<double>(input_.data()[in * g_.in_plane + pixel * kLanes + image]);
      }
    }
    return sum;
  }

  // The four outputs of a window, in the order of argmax.
  std::array<double, 4> window(std::size_t channel, std::size_t y, std::size_t x, std::size_t image) const {
    return {reference(channel, 2 * y, 2 * x, image), reference(channel, 2 * y, 2 * x + 1, image),
            reference(channel, 2 * y + 1, 2 * x, image), reference(channel, 2 * y + 1, 2 * x + 1, image)};
  }

  // Calls check(offset in the arrays, window) for all windows of the first and the last image.
  template <class Check>
  void for_windows(Check check) const {
    for (std::size_t channel = 0; channel < g_.out_channels; ++channel) {
      for (std::size_t y = 0; y < rows(); ++y) {
        for (std::size_t x = 0; x < columns(); ++x) {
          for (const std::size_t image : {std::size_t{0}, kLanes - 1}) {
            check(((channel * rows() + y) * columns() + x) * kLanes + image, window(channel, y, x, image));
          }
        }
      }
    }
  }

  // Standard deviation of an output: a sum of products of standard normal numbers, plus bias.
  double deviation() const { return std::sqrt(static_cast<double>(g_.in_channels * g_.taps() + 1)); }

 private:
  ConvGeometry g_;
  AlignedBuffer input_, weights_, bias_;
};

std::vector<Case> cases() {
  std::vector<Case> all = {{1, 6, 5, 5, 28, 28}, {6, 12, 5, 5, 12, 12}, {2, 1, 5, 5, 6, 6},
                           {1, 1, 1, 5, 2, 6},   {8, 9, 3, 3, 10, 10},  {1, 1, 1, 3, 2, 4}};
  std::mt19937 random(5);
  const auto between = [&](std::size_t low, std::size_t high) {
    return std::uniform_int_distribution<std::size_t>(low, high)(random);
  };
  while (all.size() < 40) {
    const std::size_t height = between(1, 7), width = all.size() % 2 == 0 ? 3 : 5;
    all.push_back(
        {between(1, 20), between(1, 20), height, width, height + between(1, 9), width + between(1, 14)});
  }
  return all;
}

// The largest measured error is 4e-6 of the standard deviation.
constexpr double kTolerance = 1e-5;

class WinogradRows : public testing::TestWithParam<Case> {};

TEST_P(WinogradRows, HasTheMaximaOfNaiveSumsOnEveryInstructionSet) {
  const Convolution convolution(GetParam());
  const double tolerance = kTolerance * convolution.deviation();
  test::for_each_simd_target([&](const std::string& target) {
    SCOPED_TRACE(target);
    const Pooled pooled = convolution.run(/*relu=*/false), cut = convolution.run(/*relu=*/true);
    convolution.for_windows([&](std::size_t at, const std::array<double, 4>& window) {
      const double largest = *std::max_element(window.begin(), window.end());
      const auto argmax = std::bit_cast<std::int32_t>(pooled.argmax.data()[at]);
      ASSERT_NEAR(static_cast<double>(pooled.values.data()[at]), largest, tolerance);
      ASSERT_TRUE(argmax >= 0 && argmax < 4) << argmax;
      ASSERT_NEAR(window[static_cast<std::size_t>(argmax)], largest, tolerance);
      const float positive = std::max(0.0f, pooled.values.data()[at]);
      ASSERT_EQ(cut.values.data()[at], positive);
      ASSERT_EQ(std::bit_cast<std::int32_t>(cut.argmax.data()[at]), positive > 0 ? argmax : 4);
    });
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, WinogradRows, testing::ValuesIn(cases()), [](const auto& instance) {
  const Case& c = instance.param;
  return std::to_string(instance.index) + "_" + std::to_string(c.in) + "x" + std::to_string(c.height) + "x" +
         std::to_string(c.width) + "_to_" + std::to_string(c.out) + "_kernel_" +
         std::to_string(c.kernel_height) + "x" + std::to_string(c.kernel_width);
});

TEST(WinogradRowsKernel, PropagatesNan) {
  Convolution convolution({3, 2, 5, 5, 9, 10});
  convolution.input().data()[(4 * 10 + 4) * kLanes] = std::numeric_limits<float>::quiet_NaN();
  const Pooled pooled = convolution.run(/*relu=*/true);
  EXPECT_TRUE(std::isnan(pooled.values.data()[0]));
  EXPECT_FALSE(std::isnan(pooled.values.data()[1])) << "of another image";
}

TEST(WinogradRowsKernel, IsUsedWhereItIsFaster) {
  const auto uses_winograd_rows = [](const Case& c) { return use_winograd_rows(Convolution(c).geometry()); };
  EXPECT_TRUE(uses_winograd_rows({1, 6, 5, 5, 28, 28}));
  EXPECT_TRUE(uses_winograd_rows({2, 6, 3, 3, 28, 28}));
  EXPECT_FALSE(uses_winograd_rows({1, 6, 3, 3, 28, 28})) << "too few products for its transforms";
  EXPECT_FALSE(uses_winograd_rows({6, 12, 4, 4, 12, 12})) << "another width";
  EXPECT_FALSE(uses_winograd_rows({6, 12, 5, 5, 12, 7})) << "half of the computed columns are for nothing";
  ConvGeometry g = Convolution({6, 12, 5, 5, 12, 12}).geometry();
  g.stride_x = 2;
  EXPECT_FALSE(use_winograd_rows(g));
}

}  // namespace
}  // namespace sweep::cpu
