// Winograd's convolutions and the direct kernels against naive sums in double precision.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/kernels/cpu/kernels/winograd/winograd.h"
#include "tests/core/kernels/cpu/random_values.h"
#include "tests/core/kernels/cpu/simd_targets.h"

namespace sweep::cpu {
namespace {

using test::random_values;

struct Case {
  std::size_t in, out, height, width, padding, border, stride = 1;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.in << "x" << c.height << "x" << c.width << " to " << c.out << ", padding " << c.padding
       << ", border " << c.border << ", stride " << c.stride;
}

// A convolution of one block with random values, and the naive sums of its three directions.
class Convolution {
 public:
  explicit Convolution(const Case& c) : c_(c) {
    const std::size_t height = c.height + 2 * c.padding, width = c.width + 2 * c.padding;
    const std::size_t plane = conflict_free_stride(height * width) * kLanes;
    g_ = {c.in,
          height,
          width,
          c.out,
          (height - 3) / c.stride + 1,
          (width - 3) / c.stride + 1,
          3,
          3,
          c.stride,
          c.stride,
          1,
          1,
          plane};
    layout_ = {nullptr, g_.out_height, g_.out_width + 2 * c.border, c.border, 1, 1};
    input_ = random_values(c.in * plane, 1);
    weights_ = random_values(c.in * c.out * 9, 2);
    bias_ = random_values(c.out, 3);
    grad_out_ = random_values(c.out * outputs(), 4);
    gradient_ = AlignedBuffer(c.out * layout_.channel_floats());
    pad_gradient(g_, grad_out_.data(), nullptr, layout_, gradient_.data());
    layout_.data = gradient_.data();
    sum_products();
  }

  // Scratch memory full of NaN: results must not depend on its contents.
  AlignedBuffer scratch() const {
    AlignedBuffer memory(winograd_scratch_floats(g_));
    std::fill_n(memory.data(), memory.size(), std::numeric_limits<float>::quiet_NaN());
    return memory;
  }

  AlignedBuffer forward(bool winograd, bool relu = false) const {
    AlignedBuffer out(c_.out * outputs()), memory = scratch();
    AlignedBuffer packed(winograd ? winograd_weight_floats(g_) : weights_.size());
    if (winograd) {
      winograd_transform_weights(g_, weights_.data(), false, packed.data());
      winograd_forward(g_, input_.data(), packed.data(), bias_.data(), relu, out.data(), memory.data());
    } else {
      pack_conv_weights(g_, weights_.data(), packed.data());
      conv_forward(g_, input_.data(), packed.data(), bias_.data(), relu, out.data());
    }
    return out;
  }

  AlignedBuffer input_gradient(bool winograd) const {
    AlignedBuffer grad_in(grad_in_.size()), memory = scratch();
    AlignedBuffer packed(winograd ? winograd_weight_floats(g_) : weights_.size());
    if (winograd) {
      winograd_transform_weights(g_, weights_.data(), true, packed.data());
      winograd_backward_input(g_, layout_, packed.data(), c_.padding, c_.padding, c_.height, c_.width,
                              grad_in.data(), memory.data());
    } else {
      pack_conv_weights_transposed(g_, weights_.data(), packed.data());
      conv_backward_input(g_, layout_, packed.data(), c_.padding, c_.padding, c_.height, c_.width,
                          grad_in.data());
    }
    return grad_in;
  }

  // Added to `start`.
  AlignedBuffer weight_gradient(bool winograd, float start = 0) const {
    AlignedBuffer grad_weights(weights_.size()), memory = scratch();
    std::fill_n(grad_weights.data(), grad_weights.size(), start);
    if (winograd) {
      winograd_backward_weights(g_, input_.data(), layout_, grad_weights.data(), memory.data());
    } else {
      conv_backward_weights(g_, input_.data(), layout_, grad_weights.data());
    }
    return grad_weights;
  }

  const std::vector<double>& out() const { return out_; }
  const std::vector<double>& grad_in() const { return grad_in_; }
  const std::vector<double>& grad_weights() const { return grad_weights_; }

 private:
  std::size_t outputs() const { return g_.out_height * g_.out_width * kLanes; }  // of a channel

  void sum_products() {
    out_.resize(c_.out * outputs());
    grad_in_.resize(c_.in * c_.height * c_.width * kLanes);
    grad_weights_.resize(weights_.size());
    for (std::size_t i = 0; i < out_.size(); ++i) out_[i] = static_cast<double>(bias_.data()[i / outputs()]);
    for (std::size_t o = 0; o < c_.out; ++o)
      for (std::size_t tap = 0; tap < 9; ++tap)
        for (std::size_t i = 0; i < c_.in; ++i)
          for (std::size_t y = 0; y < g_.out_height; ++y)
            for (std::size_t x = 0; x < g_.out_width; ++x) add_product(o, tap, i, y, x);
  }

  void add_product(std::size_t o, std::size_t tap, std::size_t i, std::size_t y, std::size_t x) {
    const std::size_t at = (o * 9 + tap) * c_.in + i, row = y * c_.stride + tap / 3,
                      column = x * c_.stride + tap % 3;
    const std::size_t to = ((o * g_.out_height + y) * g_.out_width + x) * kLanes;
    const float* in = input_.data() + i * g_.in_plane + (row * g_.in_width + column) * kLanes;
    const bool inside = row >= c_.padding && column >= c_.padding && row < c_.padding + c_.height &&
                        column < c_.padding + c_.width;
    const std::size_t pixel = (i * c_.height + row - c_.padding) * c_.width + column - c_.padding;
    const auto weight = static_cast<double>(weights_.data()[at]);
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const auto gradient = static_cast<double>(grad_out_.data()[to + lane]);
      out_[to + lane] += weight * static_cast<double>(in[lane]);
      grad_weights_[at] += gradient * static_cast<double>(in[lane]);
      if (inside) grad_in_[pixel * kLanes + lane] += weight * gradient;
    }
  }

  Case c_;
  ConvGeometry g_{};
  ConvGradient layout_{};
  AlignedBuffer input_, weights_, bias_, grad_out_, gradient_;
  std::vector<double> out_, grad_in_, grad_weights_;
};

// The largest difference, relative to the root mean square of the values.
double largest_error(const std::vector<double>& expected, const AlignedBuffer& values) {
  double squares = 0, largest = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    squares += expected[i] * expected[i];
    const double error = std::abs(static_cast<double>(values.data()[i]) - expected[i]);
    largest = std::isnan(error) ? std::numeric_limits<double>::infinity() : std::max(largest, error);
  }
  return largest / std::sqrt(squares / static_cast<double>(expected.size()));
}

std::vector<Case> cases() {
  std::vector<Case> all = {{16, 16, 32, 32, 1, 3},    {32, 32, 16, 16, 1, 3},    {64, 64, 8, 8, 1, 3},
                           {8, 8, 1, 1, 1, 3},        {20, 9, 17, 3, 2, 3},      {9, 20, 3, 14, 0, 0},
                           {16, 32, 32, 32, 1, 3, 2}, {32, 64, 16, 16, 1, 3, 2}, {9, 20, 3, 14, 0, 0, 2}};
  std::mt19937 random(7);
  const auto between = [&](std::size_t low, std::size_t high) {
    return std::uniform_int_distribution<std::size_t>(low, high)(random);
  };
  while (all.size() < 60) {
    const Case c{between(8, 20), between(8, 20), between(1, 17), between(1, 17), between(0, 2), 3,
                 between(1, 2)};
    if (std::min(c.height, c.width) + 2 * c.padding >= 3) all.push_back(c);
  }
  return all;
}

class Winograd : public testing::TestWithParam<Case> {};

// The largest measured error is 1.2e-5. The direct kernels have up to 4e-6, and 1.2e-5 in the weights'
// gradient on the baseline.
constexpr double kTolerance = 2e-5;

TEST_P(Winograd, MatchesNaiveSumsOnEveryInstructionSet) {
  const Convolution convolution(GetParam());
  test::for_each_simd_target([&](const std::string& target) {
    SCOPED_TRACE(target);
    EXPECT_LE(largest_error(convolution.out(), convolution.forward(true)), kTolerance);
    EXPECT_LE(largest_error(convolution.grad_weights(), convolution.weight_gradient(true)), kTolerance);
    if (GetParam().border > 0) {
      EXPECT_LE(largest_error(convolution.grad_in(), convolution.input_gradient(true)), kTolerance);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, Winograd, testing::ValuesIn(cases()), [](const auto& instance) {
  const Case& c = instance.param;
  return std::to_string(instance.index) + "_" + std::to_string(c.in) + "x" + std::to_string(c.height) + "x" +
         std::to_string(c.width) + "_to_" + std::to_string(c.out) + "_padding_" + std::to_string(c.padding) +
         "_stride_" + std::to_string(c.stride);
});

TEST(WinogradKernels, ZeroNegativeOutputsOnlyWithRelu) {
  const Convolution convolution({9, 11, 7, 6, 1, 3});
  const AlignedBuffer plain = convolution.forward(true), cut = convolution.forward(true, true);
  for (std::size_t i = 0; i < plain.size(); ++i)
    ASSERT_EQ(cut.data()[i], std::max(0.0f, plain.data()[i])) << i;
}

TEST(WinogradKernels, AccumulateTheWeightsGradient) {
  const Convolution convolution({9, 11, 7, 6, 1, 3});
  const AlignedBuffer once = convolution.weight_gradient(true), more = convolution.weight_gradient(true, 8);
  for (std::size_t i = 0; i < 9 * 11 * 9; ++i) ASSERT_EQ(more.data()[i], once.data()[i] + 8) << i;
}

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

}  // namespace
}  // namespace sweep::cpu
