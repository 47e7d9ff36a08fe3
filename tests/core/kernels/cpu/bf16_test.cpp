// Rounding to bf16, and the kernels on rounded factors, against naive sums in double precision.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/kernels/cpu/kernels/bf16/bf16_kernels.h"
#include "core/kernels/cpu/kernels/bf16_pairs.h"
#include "core/kernels/cpu/kernels/linear_kernels.h"
#include "core/kernels/cpu/simd/denormals.h"
#include "tests/support/random_values.h"

namespace sweep::cpu {
namespace {

using test::random_values;

// Reference: the nearest number whose lower 16 bits are zero; of two, the one whose last bit is zero.
float rounded(float value) {
  if (std::isnan(value)) return value;
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t below = bits & 0xFFFF0000u, rest = bits & 0xFFFFu;
  const bool up = rest > 0x8000u || (rest == 0x8000u && (bits & 0x10000u) != 0);
  return std::bit_cast<float>(up ? below + 0x10000u : below);
}

float even_of(float pair) { return std::bit_cast<float>(std::bit_cast<std::uint32_t>(pair) << 16); }
float odd_of(float pair) { return std::bit_cast<float>(std::bit_cast<std::uint32_t>(pair) & 0xFFFF0000u); }

TEST(Bf16Pairs, AreRoundedToNearestEven) {
  std::vector<float> values;
  for (std::uint32_t upper = 0; upper < 0x10000u; ++upper) {
    for (const std::uint32_t lower : {0u, 1u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu})
      values.push_back(std::bit_cast<float>(upper << 16 | lower));
  }
  std::vector<float> pairs(values.size());
  pack_pairs(values.data(), values.data(), values.size(), pairs.data());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) {
      ASSERT_TRUE(std::isnan(even_of(pairs[i])) && std::isnan(odd_of(pairs[i])));
      continue;
    }
    ASSERT_EQ(even_of(pairs[i]), rounded(values[i])) << values[i];
    ASSERT_EQ(odd_of(pairs[i]), rounded(values[i])) << values[i];
  }
  EXPECT_EQ(rounded(std::numeric_limits<float>::max()), std::numeric_limits<float>::infinity());
}

TEST(Bf16Pairs, AnOddLastChannelIsPairedWithZero) {
  constexpr std::size_t kChannels = 5, kCount = 21, kStride = 23;  // no whole vectors
  const AlignedBuffer values = random_values(kChannels * kStride, 1);
  std::vector<float> pairs(pair_count(kChannels) * kStride, 7.0f);
  pack_channel_pairs(values.data(), kChannels, kCount, kStride, pairs.data());
  for (std::size_t pair = 0; pair < pair_count(kChannels); ++pair) {
    for (std::size_t i = 0; i < kStride; ++i) {
      const float joined = pairs[pair * kStride + i];
      if (i >= kCount) {
        EXPECT_EQ(joined, 7.0f) << "beyond the channel";
        continue;
      }
      EXPECT_EQ(even_of(joined), rounded(values.data()[2 * pair * kStride + i]));
      EXPECT_EQ(odd_of(joined), pair == 2 ? 0.0f : rounded(values.data()[(2 * pair + 1) * kStride + i]));
    }
  }
}

TEST(Bf16Pairs, NeighboursInTwoRowsFillOneRow) {
  const AlignedBuffer first = random_values(kLanes, 2), second = random_values(kLanes, 3);
  AlignedBuffer pairs(kLanes), half(kLanes);
  pack_adjacent_pairs(first.data(), second.data(), pairs.data());
  pack_adjacent_pairs(first.data(), nullptr, half.data());
  for (std::size_t i = 0; i < kLanes; ++i) {
    const float* row = i < kLanes / 2 ? first.data() : second.data();
    const std::size_t at = 2 * (i % (kLanes / 2));
    EXPECT_EQ(even_of(pairs.data()[i]), rounded(row[at]));
    EXPECT_EQ(odd_of(pairs.data()[i]), rounded(row[at + 1]));
    EXPECT_EQ(half.data()[i], i < kLanes / 2 ? pairs.data()[i] : 0.0f);
  }
}

struct ConvCase {
  const char* name;
  std::size_t in, out, height, width, kernel, stride = 1, padding = 0, dilation = 1;
};

// A convolution of one block with random values, by the kernels and by naive sums of rounded factors.
class Bf16Convolution {
 public:
  explicit Bf16Convolution(const ConvCase& c) : c_(c) {
    const std::size_t height = c.height + 2 * c.padding, width = c.width + 2 * c.padding;
    const std::size_t reach = (c.kernel - 1) * c.dilation + 1;
    g_ = {c.in,
          height,
          width,
          c.out,
          (height - reach) / c.stride + 1,
          (width - reach) / c.stride + 1,
          c.kernel,
          c.kernel,
          c.stride,
          c.stride,
          c.dilation,
          c.dilation,
          conflict_free_stride(height * width) * kLanes};
    input_ = random_values(c.in * g_.in_plane, 1);
    weights_ = random_values(c.in * c.out * g_.taps(), 2);
    bias_ = random_values(c.out, 3);
    grad_out_ = random_values(c.out * outputs(), 4);
  }

  AlignedBuffer forward(const Bf16Kernels& kernels) const {
    AlignedBuffer out(c_.out * outputs());
    const auto [geometry, in, packed] = forward_arguments(kernels);
    kernels.conv_forward(geometry, in.data(), packed.data(), bias_.data(), false, out.data());
    return out;
  }

  // The maxima, followed by their argmax.
  AlignedBuffer pooled(const Bf16Kernels& kernels, bool relu) const {
    const std::size_t floats = c_.out * (g_.out_height / 2) * (g_.out_width / 2) * kLanes;
    AlignedBuffer out(2 * floats);
    const auto [geometry, in, packed] = forward_arguments(kernels);
    kernels.conv_pool_forward(geometry, in.data(), packed.data(), bias_.data(), relu, out.data(),
                              out.data() + floats);
    return out;
  }

  AlignedBuffer backward(const Bf16Kernels& kernels) const {
    const bool gaps = c_.dilation > 1;
    const std::size_t gap = gaps ? c_.stride : 1;
    ConvGradient layout{nullptr,
                        (g_.out_height - 1) * gap + 1,
                        (g_.out_width - 1) * gap + 1 + 2 * kGradientBorder,
                        kGradientBorder,
                        gap,
                        gap};
    AlignedBuffer spread(c_.out * layout.channel_floats()), grad_in(c_.in * c_.height * c_.width * kLanes);
    AlignedBuffer pairs(pair_count(c_.out) * layout.channel_floats());
    pad_gradient(g_, grad_out_.data(), nullptr, layout, spread.data());
    pack_channel_pairs(spread.data(), c_.out, layout.channel_floats(), layout.channel_floats(), pairs.data());
    AlignedBuffer packed(weights_.size()), packed_pairs(pair_count(c_.out) * c_.in * g_.taps());
    pack_conv_weights_transposed(g_, kernels.channel_tile, weights_.data(), packed.data());
    pack_conv_weight_pairs(g_, kernels.channel_tile, c_.out, c_.in, packed.data(), packed_pairs.data());
    ConvGeometry paired = g_;
    paired.out_channels = pair_count(c_.out);
    layout.data = pairs.data();
    kernels.conv_backward_input(paired, layout, packed_pairs.data(), c_.padding, c_.padding, c_.height,
                                c_.width, grad_in.data());
    return grad_in;
  }

  // Calls use(input element, weight, output element) for every product of the convolution, padding included.
  template <class Use>
  void for_products(Use use) const {
    for (std::size_t o = 0; o < c_.out; ++o)
      for (std::size_t y = 0; y < g_.out_height; ++y)
        for (std::size_t x = 0; x < g_.out_width; ++x)
          for (std::size_t i = 0; i < c_.in; ++i)
            for (std::size_t tap = 0; tap < g_.taps(); ++tap) {
              const std::size_t row = y * c_.stride + tap / c_.kernel * c_.dilation;
              const std::size_t column = x * c_.stride + tap % c_.kernel * c_.dilation;
              use(i, row, column, rounded(weights_.data()[(o * g_.taps() + tap) * c_.in + i]),
                  (o * g_.out_height + y) * g_.out_width + x);
            }
  }

  std::vector<double> reference_forward() const {
    std::vector<double> out(c_.out * outputs());
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<double>(bias_.data()[i / outputs()]);
    for_products([&](std::size_t i, std::size_t row, std::size_t column, float weight, std::size_t at) {
      const float* in = input_.data() + i * g_.in_plane + (row * g_.in_width + column) * kLanes;
      for (std::size_t lane = 0; lane < kLanes; ++lane)
        out[at * kLanes + lane] += static_cast<double>(weight) * static_cast<double>(rounded(in[lane]));
    });
    return out;
  }

  std::vector<double> reference_backward() const {
    std::vector<double> grad_in(c_.in * c_.height * c_.width * kLanes);
    for_products([&](std::size_t i, std::size_t row, std::size_t column, float weight, std::size_t at) {
      if (row < c_.padding || column < c_.padding || row >= c_.padding + c_.height ||
          column >= c_.padding + c_.width)
        return;
      const std::size_t to = (i * c_.height + row - c_.padding) * c_.width + column - c_.padding;
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        grad_in[to * kLanes + lane] +=
            static_cast<double>(weight) * static_cast<double>(rounded(grad_out_.data()[at * kLanes + lane]));
      }
    });
    return grad_in;
  }

  const ConvGeometry& geometry() const { return g_; }

 private:
  struct ForwardArguments {
    ConvGeometry geometry;
    AlignedBuffer in, packed;
  };

  ForwardArguments forward_arguments(const Bf16Kernels& kernels) const {
    ConvGeometry paired = g_;
    paired.in_channels = pair_count(c_.in);
    AlignedBuffer packed(weights_.size()), pairs(paired.in_channels * g_.in_plane);
    AlignedBuffer packed_pairs(paired.in_channels * c_.out * g_.taps());
    pack_conv_weights(g_, kernels.channel_tile, weights_.data(), packed.data());
    pack_conv_weight_pairs(g_, kernels.channel_tile, c_.in, c_.out, packed.data(), packed_pairs.data());
    pack_channel_pairs(input_.data(), c_.in, g_.in_plane, g_.in_plane, pairs.data());
    return {paired, std::move(pairs), std::move(packed_pairs)};
  }

  std::size_t outputs() const { return g_.out_height * g_.out_width * kLanes; }

  ConvCase c_;
  ConvGeometry g_{};
  AlignedBuffer input_, weights_, bias_, grad_out_;
};

void expect_near(const AlignedBuffer& actual, const std::vector<double>& expected) {
  double largest = 0, error = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    error = std::max(error, std::abs(expected[i] - static_cast<double>(actual.data()[i])));
  }
  EXPECT_GT(largest, 0.1);
  // Far below the 2e-3 of rounding the factors, because sums are fp32.
  EXPECT_LT(error, 2e-6 * largest);
}

std::vector<std::uint32_t> bits_of(const AlignedBuffer& buffer) {
  std::vector<std::uint32_t> bits(buffer.size());
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = std::bit_cast<std::uint32_t>(buffer.data()[i]);
  return bits;
}

class Bf16Conv : public testing::TestWithParam<ConvCase> {
 protected:
  const FlushDenormals flush_;
};

TEST_P(Bf16Conv, SumsProductsOfRoundedFactors) {
  const Bf16Convolution convolution(GetParam());
  expect_near(convolution.forward(bf16_emulated_kernels()), convolution.reference_forward());
  expect_near(convolution.backward(bf16_emulated_kernels()), convolution.reference_backward());
}

TEST_P(Bf16Conv, HardwareAndEmulationGiveTheSameBits) {
  const Bf16Kernels* hardware = bf16_hardware_kernels();
  if (hardware == nullptr) GTEST_SKIP() << "no AVX512_BF16";
  const Bf16Convolution convolution(GetParam());
  EXPECT_EQ(bits_of(convolution.forward(*hardware)), bits_of(convolution.forward(bf16_emulated_kernels())));
  EXPECT_EQ(bits_of(convolution.backward(*hardware)), bits_of(convolution.backward(bf16_emulated_kernels())));
}

class Bf16PooledConv : public Bf16Conv {};

TEST_P(Bf16PooledConv, HasTheMaximaOfTheSameSums) {
  const Bf16Convolution convolution(GetParam());
  const ConvGeometry& g = convolution.geometry();
  const AlignedBuffer plain = convolution.forward(bf16_emulated_kernels());
  const AlignedBuffer pooled = convolution.pooled(bf16_emulated_kernels(), false);
  const std::size_t height = g.out_height / 2, width = g.out_width / 2;
  for (std::size_t i = 0; i < g.out_channels * height * width * kLanes; ++i) {
    const std::size_t lane = i % kLanes, x = i / kLanes % width, y = i / kLanes / width % height,
                      c = i / kLanes / width / height;
    const auto at = [&](std::size_t dy, std::size_t dx) {
      return plain.data()[((c * g.out_height + 2 * y + dy) * g.out_width + 2 * x + dx) * kLanes + lane];
    };
    ASSERT_EQ(pooled.data()[i], std::max(std::max(at(0, 0), at(0, 1)), std::max(at(1, 0), at(1, 1)))) << i;
  }
  if (bf16_hardware_kernels() == nullptr) return;
  for (const bool relu : {false, true}) {
    EXPECT_EQ(bits_of(convolution.pooled(*bf16_hardware_kernels(), relu)),
              bits_of(convolution.pooled(bf16_emulated_kernels(), relu)));
  }
}

const ConvCase kPoolable[] = {{"Plain", 4, 12, 9, 11, 3},           {"OddChannels", 5, 7, 8, 8, 3},
                              {"OneByOne", 6, 9, 5, 6, 1},          {"FiveByFive", 6, 12, 12, 12, 5},
                              {"Padded", 3, 8, 7, 7, 3, 1, 1},      {"Strided", 8, 6, 11, 9, 3, 2, 1},
                              {"StridedOneByOne", 7, 5, 8, 9, 1, 2}};
const ConvCase kOthers[] = {{"Dilated", 4, 5, 12, 11, 3, 1, 2, 2},
                            {"DilatedAndStrided", 3, 4, 13, 12, 3, 2, 2, 2},
                            {"OneOutput", 9, 13, 4, 4, 4}};

std::string name_of(const testing::TestParamInfo<ConvCase>& instance) { return instance.param.name; }

INSTANTIATE_TEST_SUITE_P(Geometries, Bf16Conv, testing::ValuesIn(kPoolable), name_of);
INSTANTIATE_TEST_SUITE_P(OtherGeometries, Bf16Conv, testing::ValuesIn(kOthers), name_of);
INSTANTIATE_TEST_SUITE_P(Geometries, Bf16PooledConv, testing::ValuesIn(kPoolable), name_of);

TEST(Bf16Kernels, TreatDenormalsAsZeroAndPropagateNanAndInfinity) {
  if (bf16_hardware_kernels() == nullptr) GTEST_SKIP() << "no AVX512_BF16";
  const FlushDenormals flush;
  const float tiny = std::bit_cast<float>(0x00050000u), small = 1e-30f,
              infinity = std::numeric_limits<float>::infinity(),
              nan = std::numeric_limits<float>::quiet_NaN();
  AlignedBuffer values(2 * kLanes), pairs(kLanes);
  const float factors[] = {tiny, -tiny, small, -small, 1.0f, -2.5f, infinity, nan};
  for (std::size_t i = 0; i < 2 * kLanes; ++i) values.data()[i] = factors[(i * 5 + i / kLanes) % 8];
  pack_pairs(values.data(), values.data() + kLanes, kLanes, pairs.data());
  for (const float first : factors) {
    for (const float second : factors) {
      AlignedBuffer weights(kLanes), hardware(kLanes), emulated(kLanes);
      pack_pairs(&first, &second, 1, weights.data());
      bf16_hardware_kernels()->linear_forward(weights.data(), nullptr, 1, 1, false, pairs.data(),
                                              hardware.data());
      bf16_emulated_kernels().linear_forward(weights.data(), nullptr, 1, 1, false, pairs.data(),
                                             emulated.data());
      for (std::size_t i = 0; i < kLanes; ++i) {
        const float a = hardware.data()[i], b = emulated.data()[i];
        EXPECT_TRUE((std::isnan(a) && std::isnan(b)) || a == b) << a << " and " << b;
      }
    }
  }
}

class Bf16Linear : public testing::TestWithParam<std::pair<std::size_t, std::size_t>> {
 protected:
  // y, then grad_x.
  std::pair<AlignedBuffer, AlignedBuffer> products(const Bf16Kernels& kernels) const {
    const auto [in, out] = GetParam();
    AlignedBuffer panels(linear_panels(out) * in * kLanes);
    pack_linear_weights(weights_.data(), in, out, panels.data());
    AlignedBuffer in_pairs(linear_panels(out) * pair_count(in) * kLanes);
    AlignedBuffer out_pairs(linear_panels(pair_count(out)) * in * kLanes);
    pack_linear_input_pairs(panels.data(), in, out, in_pairs.data());
    pack_linear_output_pairs(panels.data(), in, out, out_pairs.data());
    AlignedBuffer x(pair_count(in) * kLanes), grad_y(pair_count(out) * kLanes), y(out * kLanes),
        grad_x(in * kLanes);
    pack_channel_pairs(x_.data(), in, kLanes, kLanes, x.data());
    pack_channel_pairs(grad_y_.data(), out, kLanes, kLanes, grad_y.data());
    kernels.linear_forward(in_pairs.data(), nullptr, pair_count(in), out, false, x.data(), y.data());
    kernels.linear_backward_input(out_pairs.data(), in, pair_count(out), grad_y.data(), grad_x.data());
    return {std::move(y), std::move(grad_x)};
  }

  const FlushDenormals flush_;
  AlignedBuffer weights_ = random_values(GetParam().first * GetParam().second, 1),
                x_ = random_values(GetParam().first * kLanes, 2),
                grad_y_ = random_values(GetParam().second * kLanes, 3);
};

TEST_P(Bf16Linear, SumsProductsOfRoundedFactors) {
  const auto [in, out] = GetParam();
  std::vector<double> y(out * kLanes), grad_x(in * kLanes);
  for (std::size_t o = 0; o < out; ++o) {
    for (std::size_t i = 0; i < in; ++i) {
      const auto weight = static_cast<double>(rounded(weights_.data()[o * in + i]));
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        y[o * kLanes + lane] += weight * static_cast<double>(rounded(x_.data()[i * kLanes + lane]));
        grad_x[i * kLanes + lane] += weight * static_cast<double>(rounded(grad_y_.data()[o * kLanes + lane]));
      }
    }
  }
  const auto emulated = products(bf16_emulated_kernels());
  expect_near(emulated.first, y);
  expect_near(emulated.second, grad_x);
  if (bf16_hardware_kernels() == nullptr) return;
  const auto hardware = products(*bf16_hardware_kernels());
  EXPECT_EQ(bits_of(hardware.first), bits_of(emulated.first));
  EXPECT_EQ(bits_of(hardware.second), bits_of(emulated.second));
}

INSTANTIATE_TEST_SUITE_P(Sizes, Bf16Linear,
                         testing::Values(std::pair{2, 2}, std::pair{3, 5}, std::pair{17, 10},
                                         std::pair{192, 120}, std::pair{33, 33}, std::pair{64, 49},
                                         std::pair{7, 80}));

}  // namespace
}  // namespace sweep::cpu
