// Winograd's convolutions, in two dimensions and along rows with pooling, against the direct kernels, which
// references_test.cpp compares with PyTorch's.

#include <bit>
#include <random>

#include "core/kernels/cpu/kernels/winograd/winograd.h"
#include "core/kernels/cpu/simd/block.h"
#include "tests/core/kernels/cpu/simd_targets.h"

namespace sweep::cpu::winograd_test {

// Normal numbers, the same for the same seed.
cpu::AlignedBuffer random_values(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  cpu::AlignedBuffer values(count);
  for (std::size_t i = 0; i < count; ++i) values.data()[i] = normal(random);
  return values;
}

struct Case {
  std::size_t in, out, height, width;  // of the input
  std::size_t kernel_height = 3, kernel_width = 3, padding = 0, border = 0, stride = 1;
};

std::string text_of(const Case& c) {
  return std::to_string(c.in) + "x" + std::to_string(c.height) + "x" + std::to_string(c.width) + "_to_" +
         std::to_string(c.out) + "_kernel_" + std::to_string(c.kernel_height) + "x" +
         std::to_string(c.kernel_width) + "_padding_" + std::to_string(c.padding) + "_stride_" +
         std::to_string(c.stride);
}

void PrintTo(const Case& c, std::ostream* out) { *out << text_of(c); }

constexpr auto kName = [](const auto& instance) {
  return std::to_string(instance.index) + "_" + text_of(instance.param);
};

ConvGeometry geometry_of(const Case& c) {
  const std::size_t height = c.height + 2 * c.padding, width = c.width + 2 * c.padding;
  return {c.in,
          height,
          width,
          c.out,
          (height - c.kernel_height) / c.stride + 1,
          (width - c.kernel_width) / c.stride + 1,
          c.kernel_height,
          c.kernel_width,
          c.stride,
          c.stride,
          1,
          1,
          conflict_free_stride(height * width) * kLanes,
          c.padding,
          c.padding};
}

struct Pooled {
  AlignedBuffer values, argmax;
};

// Scratch memory full of NaN: results must not depend on its contents.
AlignedBuffer scratch(std::size_t floats) {
  AlignedBuffer memory(floats);
  std::fill_n(memory.data(), floats, std::numeric_limits<float>::quiet_NaN());
  return memory;
}

// A convolution of one block with random values.
class Convolution {
 public:
  explicit Convolution(const Case& c) : c_(c), g_(geometry_of(c)) {
    layout_ = {nullptr, g_.out_height, g_.out_width + 2 * c.border, c.border, 1, 1};
    input_ = random_values(c.in * g_.in_plane, 1);
    weights_ = random_values(c.in * c.out * g_.taps(), 2);
    bias_ = random_values(c.out, 3);
    const AlignedBuffer grad_out = random_values(c.out * outputs(), 4);
    gradient_ = AlignedBuffer(c.out * layout_.channel_floats());
    pad_gradient(g_, grad_out.data(), nullptr, layout_, gradient_.data());
    layout_.data = gradient_.data();
  }

  AlignedBuffer forward(bool relu = false) const {
    AlignedBuffer out(c_.out * outputs()), memory = scratch(winograd_scratch_floats(g_));
    winograd_forward(g_, input_.data(), transformed(false).data(), bias_.data(), relu, out.data(),
                     memory.data());
    return out;
  }
  AlignedBuffer direct_forward() const {
    AlignedBuffer out(c_.out * outputs());
    conv_forward(g_, input_.data(), packed(false).data(), bias_.data(), false, out.data());
    return out;
  }

  AlignedBuffer input_gradient() const {
    AlignedBuffer grad_in(inputs()), memory = scratch(winograd_scratch_floats(g_));
    winograd_backward_input(g_, layout_, transformed(true).data(), grad_in.data(), memory.data());
    return grad_in;
  }
  AlignedBuffer direct_input_gradient() const {
    AlignedBuffer grad_in(inputs());
    conv_backward_input(g_, layout_, packed(true).data(), grad_in.data());
    return grad_in;
  }

  // Added to `start`.
  AlignedBuffer weight_gradient(float start = 0) const {
    AlignedBuffer grad_weights(weights_.size()), memory = scratch(winograd_scratch_floats(g_));
    std::fill_n(grad_weights.data(), grad_weights.size(), start);
    winograd_backward_weights(g_, input_.data(), layout_, kLanes, grad_weights.data(), memory.data());
    return grad_weights;
  }
  AlignedBuffer direct_weight_gradient() const {
    AlignedBuffer grad_weights(weights_.size());
    conv_backward_weights(g_, input_.data(), layout_, grad_weights.data());
    return grad_weights;
  }

  // Along rows, with pooling.
  Pooled pooled(bool relu) const {
    AlignedBuffer transformed(winograd_rows_weight_floats(g_)),
        memory = scratch(winograd_rows_scratch_floats(g_));
    winograd_rows_transform_weights(g_, weights_.data(), transformed.data());
    const std::size_t count = c_.out * rows() * columns() * kLanes;
    Pooled pooled{AlignedBuffer(count), AlignedBuffer(count)};
    winograd_rows_pool_forward(g_, input_.data(), transformed.data(), bias_.data(), relu,
                               pooled.values.data(), pooled.argmax.data(), memory.data());
    return pooled;
  }

  AlignedBuffer& input() { return input_; }

  // Calls check(offset in the pooled arrays, the four outputs of a window in the order of argmax).
  template <class Check>
  void for_windows(Check check) const {
    const AlignedBuffer out = direct_forward();
    for (std::size_t row = 0; row < c_.out * rows(); ++row) {
      const float* first = out.data() + row / rows() * outputs() + row % rows() * 2 * g_.out_width * kLanes;
      for (std::size_t i = 0; i < columns() * kLanes; ++i) {
        const float* upper = first + i / kLanes * 2 * kLanes + i % kLanes;
        const float* lower = upper + g_.out_width * kLanes;
        check(row * columns() * kLanes + i, std::array{upper[0], upper[kLanes], lower[0], lower[kLanes]});
      }
    }
  }

 private:
  std::size_t outputs() const { return g_.out_height * g_.out_width * kLanes; }  // of a channel
  std::size_t inputs() const { return c_.in * c_.height * c_.width * kLanes; }
  std::size_t rows() const { return g_.out_height / 2; }
  std::size_t columns() const { return g_.out_width / 2; }

  AlignedBuffer transformed(bool transposed) const {
    AlignedBuffer weights(winograd_weight_floats(g_));
    winograd_transform_weights(g_, weights_.data(), transposed, weights.data());
    return weights;
  }
  AlignedBuffer packed(bool transposed) const {
    AlignedBuffer weights(weights_.size());
    pack_conv_weights(g_, weights_.data(), transposed, weights.data());
    return weights;
  }

  Case c_;
  ConvGeometry g_;
  ConvGradient layout_{};
  AlignedBuffer input_, weights_, bias_, gradient_;
};

// The largest difference, relative to the root mean square of the values.
double largest_error(const AlignedBuffer& expected, const AlignedBuffer& values) {
  double squares = 0, largest = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto value = static_cast<double>(expected.data()[i]);
    const double error = std::abs(static_cast<double>(values.data()[i]) - value);
    squares += value * value;
    largest = std::isnan(error) ? std::numeric_limits<double>::infinity() : std::max(largest, error);
  }
  return largest / std::sqrt(squares / static_cast<double>(expected.size()));
}

std::vector<Case> cases() {
  std::vector<Case> all = {
      {16, 16, 32, 32, 3, 3, 1, 3},    {32, 32, 16, 16, 3, 3, 1, 3},    {64, 64, 8, 8, 3, 3, 1, 3},
      {8, 8, 1, 1, 3, 3, 1, 3},        {20, 9, 17, 3, 3, 3, 2, 3},      {9, 20, 3, 14, 3, 3, 0, 0},
      {16, 32, 32, 32, 3, 3, 1, 3, 2}, {32, 64, 16, 16, 3, 3, 1, 3, 2}, {9, 20, 3, 14, 3, 3, 0, 0, 2}};
  std::mt19937 random(7);
  const auto between = [&](std::size_t low, std::size_t high) {
    return std::uniform_int_distribution<std::size_t>(low, high)(random);
  };
  while (all.size() < 60) {
    const Case c{between(8, 20), between(8, 20), between(1, 17), between(1, 17), 3, 3, between(0, 2), 3,
                 between(1, 2)};
    if (std::min(c.height, c.width) + 2 * c.padding >= 3) all.push_back(c);
  }
  return all;
}

// Against sums in double precision, the largest measured error of these kernels is 1.2e-5.
constexpr double kTolerance = 2e-5;

class Winograd : public testing::TestWithParam<Case> {};

TEST_P(Winograd, MatchesTheDirectKernelsOnEveryInstructionSet) {
  const Convolution convolution(GetParam());
  test::for_each_simd_target([&](const std::string& target) {
    SCOPED_TRACE(target);
    const AlignedBuffer plain = convolution.forward(), cut = convolution.forward(/*relu=*/true);
    EXPECT_LE(largest_error(convolution.direct_forward(), plain), kTolerance);
    for (std::size_t i = 0; i < plain.size(); ++i)
      ASSERT_EQ(cut.data()[i], std::max(0.0f, plain.data()[i])) << i;
    const AlignedBuffer once = convolution.weight_gradient(), more = convolution.weight_gradient(8);
    EXPECT_LE(largest_error(convolution.direct_weight_gradient(), once), kTolerance);
    for (std::size_t i = 0; i < GetParam().in * GetParam().out * 9; ++i)
      ASSERT_EQ(more.data()[i], once.data()[i] + 8) << i;
    if (GetParam().border > 0) {
      EXPECT_LE(largest_error(convolution.direct_input_gradient(), convolution.input_gradient()), kTolerance);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, Winograd, testing::ValuesIn(cases()), kName);

TEST(WinogradKernels, AreUsedWhereTheyAreFaster) {
  const auto uses_winograd = [](std::size_t in, std::size_t out, std::size_t height, std::size_t width,
                                std::size_t kernel = 3, std::size_t stride = 1, std::size_t dilation = 1) {
    return use_winograd({in, height + 2, width + 2, out, height, width, kernel, kernel, stride, stride,
                         dilation, dilation, 0});
  };
  EXPECT_TRUE(uses_winograd(16, 16, 32, 32));
  EXPECT_TRUE(uses_winograd(64, 64, 8, 8));
  EXPECT_TRUE(uses_winograd(17, 8, 5, 5));
  EXPECT_FALSE(uses_winograd(3, 16, 32, 32)) << "few channels";
  EXPECT_FALSE(uses_winograd(64, 7, 32, 32)) << "few channels";
  EXPECT_FALSE(uses_winograd(64, 64, 4, 4)) << "one tile where four are multiplied";
  EXPECT_FALSE(uses_winograd(64, 64, 32, 1)) << "tiles beyond the image";
  EXPECT_FALSE(uses_winograd(64, 64, 8, 8, 5));
  EXPECT_TRUE(uses_winograd(16, 32, 16, 16, 3, 2));
  EXPECT_FALSE(uses_winograd(16, 31, 16, 16, 3, 2)) << "few channels";
  EXPECT_FALSE(uses_winograd(64, 64, 10, 10, 3, 2)) << "tiles beyond the image";
  EXPECT_FALSE(uses_winograd(64, 64, 8, 8, 3, 3));
  EXPECT_FALSE(uses_winograd(64, 64, 8, 8, 3, 1, 2));
}

std::vector<Case> row_cases() {
  std::vector<Case> all = {{1, 6, 28, 28, 5, 5}, {6, 12, 12, 12, 5, 5}, {2, 1, 6, 6, 5, 5},
                           {1, 1, 2, 6, 1, 5},   {8, 9, 10, 10, 3, 3},  {1, 1, 2, 4, 1, 3}};
  std::mt19937 random(5);
  const auto between = [&](std::size_t low, std::size_t high) {
    return std::uniform_int_distribution<std::size_t>(low, high)(random);
  };
  while (all.size() < 40) {
    const std::size_t height = between(1, 7), width = all.size() % 2 == 0 ? 3 : 5;
    all.push_back(
        {between(1, 20), between(1, 20), height + between(1, 9), width + between(1, 14), height, width});
  }
  return all;
}

class WinogradRows : public testing::TestWithParam<Case> {};

TEST_P(WinogradRows, HasTheMaximaOfTheDirectKernelsOnEveryInstructionSet) {
  const Convolution convolution(GetParam());
  // The largest measured error is 4e-6 of the standard deviation of an output, a sum of products of standard
  // normal numbers, plus bias.
  const ConvGeometry g = geometry_of(GetParam());
  const double tolerance = 1e-5 * std::sqrt(static_cast<double>(g.in_channels * g.taps() + 1));
  test::for_each_simd_target([&](const std::string& target) {
    SCOPED_TRACE(target);
    const Pooled pooled = convolution.pooled(/*relu=*/false), cut = convolution.pooled(/*relu=*/true);
    convolution.for_windows([&](std::size_t at, const std::array<float, 4>& window) {
      const float largest = *std::max_element(window.begin(), window.end());
      const auto argmax = std::bit_cast<std::int32_t>(pooled.argmax.data()[at]);
      ASSERT_NEAR(pooled.values.data()[at], largest, tolerance);
      ASSERT_TRUE(argmax >= 0 && argmax < 4) << argmax;
      ASSERT_NEAR(window[static_cast<std::size_t>(argmax)], largest, tolerance);
      const float positive = std::max(0.0f, pooled.values.data()[at]);
      ASSERT_EQ(cut.values.data()[at], positive);
      ASSERT_EQ(std::bit_cast<std::int32_t>(cut.argmax.data()[at]), positive > 0 ? argmax : 4);
    });
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, WinogradRows, testing::ValuesIn(row_cases()), kName);

TEST(WinogradRowsKernel, PropagatesNan) {
  Convolution convolution({3, 2, 9, 10, 5, 5});
  convolution.input().data()[(4 * 10 + 4) * kLanes] = std::numeric_limits<float>::quiet_NaN();
  const Pooled pooled = convolution.pooled(/*relu=*/true);
  EXPECT_TRUE(std::isnan(pooled.values.data()[0]));
  EXPECT_FALSE(std::isnan(pooled.values.data()[1])) << "of another image";
}

TEST(WinogradRowsKernel, IsUsedWhereItIsFaster) {
  const auto uses_winograd_rows = [](const Case& c) { return use_winograd_rows(geometry_of(c)); };
  EXPECT_TRUE(uses_winograd_rows({1, 6, 28, 28, 5, 5}));
  EXPECT_TRUE(uses_winograd_rows({2, 6, 28, 28, 3, 3}));
  EXPECT_FALSE(uses_winograd_rows({1, 6, 28, 28, 3, 3})) << "too few products for its transforms";
  EXPECT_FALSE(uses_winograd_rows({6, 12, 12, 12, 4, 4})) << "another width";
  EXPECT_FALSE(uses_winograd_rows({6, 12, 12, 7, 5, 5})) << "half of the computed columns are for nothing";
  ConvGeometry g = geometry_of({6, 12, 12, 12, 5, 5});
  g.stride_x = 2;
  EXPECT_FALSE(use_winograd_rows(g));
}

}  // namespace sweep::cpu::winograd_test
