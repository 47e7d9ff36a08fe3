// The fused convolutions, for kernels, paddings and sizes of every kind: the same bits alone and with others.
// Parity.OfPooledConvolutions compares them with the CPU's.
#include "tests/core/kernels/cuda/kernels/any_device.h"

#include <random>

namespace sweep::cuda::conv_pool_test {

using Floats = std::vector<float>;

using test::conv_pool_shape;

std::size_t size(int count) { return static_cast<std::size_t>(count); }

struct Convolutions {
  std::string name;
  std::vector<ConvPoolShape> shapes;
  bool input_gradient = true;
};

void PrintTo(const Convolutions& convolutions, std::ostream* out) { *out << convolutions.name; }

std::size_t inputs(const ConvPoolShape& s) { return size(s.in_channels) * size(s.in_height * s.in_width); }

Floats random_floats(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  Floats values(count);
  for (float& value : values) value = uniform(random);
  return values;
}

// What the kernels give.
struct Result {
  std::vector<Floats> outputs;    // of each convolution
  std::vector<Floats> gradients;  // of each convolution's parameters, added up over the slices
  Floats grad_in;
};

struct Parameters {
  Floats weight, bias;
};

std::vector<Parameters> random_parameters(const std::vector<ConvPoolShape>& shapes) {
  std::vector<Parameters> parameters;
  for (const ConvPoolShape& s : shapes) {
    const unsigned seed = 10 + static_cast<unsigned>(parameters.size());
    parameters.push_back(
        {random_floats(size(s.weights()), seed), random_floats(size(s.bias ? s.out_channels : 0), 2 * seed)});
  }
  return parameters;
}

// Runs a chain forward and backward. slices: of the weight gradients.
Result run(const Convolutions& convolutions, const std::vector<Parameters>& parameters, const Floats& in,
           const Floats& grad_out, int images, int slices) {
  const std::vector<ConvPoolShape>& shapes = convolutions.shapes;
  Stream stream;
  ConvPoolChain chain;
  std::vector<ConvPoolArrays> arrays;
  std::vector<Array<float>> constants, outputs, gradients;
  std::vector<Array<std::uint8_t>> argmax;
  constants.reserve(2 * shapes.size());
  const auto count = size(images);
  for (std::size_t l = 0; l < shapes.size(); ++l) {
    const ConvPoolShape& s = shapes[l];
    chain.shapes[chain.count++] = s;
    const float* weight = constants.emplace_back(to_device(stream, parameters[l].weight, "a test")).data();
    const float* bias = constants.emplace_back(to_device(stream, parameters[l].bias, "a test")).data();
    const auto gradient_floats = size(slices) * size(s.gradient_floats());
    arrays.push_back({.weight = weight,
                      .bias = s.bias ? bias : nullptr,
                      .out = outputs.emplace_back(count * size(s.outputs()), "a test").data(),
                      .argmax = argmax.emplace_back(count * size(s.argmax_bytes()), "a test").data(),
                      .gradient = gradients.emplace_back(gradient_floats, "a test").data()});
  }
  EXPECT_TRUE(conv_pool_fits(chain, convolutions.input_gradient));
  const Array<float> device_in = to_device(stream, in, "a test"),
                     device_grad_out = to_device(stream, grad_out, "a test");
  const Array<float> memory(in.size(), "a test");
  float* grad_in = convolutions.input_gradient ? memory.data() : nullptr;
  const ConvPoolInput input{.floats = device_in.data()};
  conv_pool_forward(stream, chain, images, input, arrays.data());
  conv_pool_backward(stream, chain, images, slices, input, arrays.data(), device_grad_out.data(), false,
                     grad_in);
  Result result;
  for (std::size_t l = 0; l < shapes.size(); ++l) {
    const ConvPoolShape& s = shapes[l];
    result.outputs.push_back(to_host(stream, outputs[l].data(), count * size(s.outputs())));
    const auto floats = size(s.gradient_floats());
    const Floats of_slices = to_host(stream, gradients[l].data(), size(slices) * floats);
    Floats& sum = result.gradients.emplace_back(floats);
    for (std::size_t i = 0; i < of_slices.size(); ++i) sum[i % floats] += of_slices[i];
  }
  if (!convolutions.input_gradient) return result;
  result.grad_in = to_host(stream, memory.data(), in.size());
  // What is there is added to, with the same weight gradients.
  conv_pool_backward(stream, chain, images, slices, input, arrays.data(), device_grad_out.data(), true,
                     grad_in);
  const Floats twice = to_host(stream, memory.data(), in.size());
  for (std::size_t i = 0; i < in.size(); ++i) EXPECT_EQ(twice[i], 2 * result.grad_in[i]);
  return result;
}

class ConvPool : public testing::TestWithParam<Convolutions> {
 protected:
  const std::vector<ConvPoolShape>& shapes_ = GetParam().shapes;
  const std::vector<Parameters> parameters_ = random_parameters(shapes_);

  Floats input(int images) const { return random_floats(size(images) * inputs(shapes_[0]), 1); }
  Floats output_gradient(int images) const {
    return random_floats(size(images) * size(shapes_.back().outputs()), 2);
  }
};

TEST_P(ConvPool, GivesAnImageTheSameBitsAloneAndInABatch) {
  const int images = 3;
  const Floats in = input(images), gradient = output_gradient(images);
  const Result all = run(GetParam(), parameters_, in, gradient, images, 1);
  const auto row = [](const Floats& rows, int image, std::size_t floats) {
    const auto first = rows.begin() + static_cast<std::ptrdiff_t>(size(image) * floats);
    return Floats(first, first + static_cast<std::ptrdiff_t>(floats));
  };
  const std::size_t in_size = inputs(shapes_[0]), out_size = size(shapes_.back().outputs());
  for (int image = 0; image < images; ++image) {
    const Result one =
        run(GetParam(), parameters_, row(in, image, in_size), row(gradient, image, out_size), 1, 1);
    EXPECT_EQ(one.outputs.back(), row(all.outputs.back(), image, out_size));
    if (GetParam().input_gradient) {
      EXPECT_EQ(one.grad_in, row(all.grad_in, image, in_size));
    }
  }
}

class ConvPoolsInARow : public ConvPool {};

TEST_P(ConvPoolsInARow, GiveTheBitsOfOneAfterTheOther) {
  const int images = 3, slices = images + 1;  // one slice has two images, two have none
  const Floats in = input(images), gradient = output_gradient(images);
  const Result both = run(GetParam(), parameters_, in, gradient, images, slices);
  const Result second = run({"", {shapes_[1]}}, {parameters_[1]}, both.outputs[0], gradient, images, slices);
  const Result first = run({"", {shapes_[0]}, GetParam().input_gradient}, {parameters_[0]}, in,
                           second.grad_in, images, slices);
  EXPECT_EQ(both.outputs[0], first.outputs[0]);
  EXPECT_EQ(both.outputs[1], second.outputs[0]);
  EXPECT_EQ(both.gradients[0], first.gradients[0]);
  EXPECT_EQ(both.gradients[1], second.gradients[0]);
  EXPECT_EQ(both.grad_in, first.grad_in);
}

const Convolutions kDeeplizard{
    "Deeplizard", {conv_pool_shape(1, {28, 28}, 6, {5, 5}), conv_pool_shape(6, {12, 12}, 12, {5, 5})}, false};
const Convolutions kPadded{
    "ThreeByThreePadded",
    {conv_pool_shape(3, {11, 10}, 8, {3, 3}, {1, 1}), conv_pool_shape(8, {5, 5}, 10, {3, 3}, {1, 1})}};
const Convolutions kDifferent{
    "DifferentPadding",
    {conv_pool_shape(2, {13, 12}, 5, {3, 3}), conv_pool_shape(5, {5, 5}, 4, {3, 3}, {2, 3})}};

constexpr auto kName = [](const auto& test) { return test.param.name; };

INSTANTIATE_TEST_SUITE_P(Of, ConvPoolsInARow, testing::Values(kDeeplizard, kPadded, kDifferent), kName);
INSTANTIATE_TEST_SUITE_P(
    Of, ConvPool,
    testing::Values(
        kDeeplizard, kPadded, kDifferent,
        Convolutions{"NoBiasOddSizes", {conv_pool_shape(2, {9, 11}, 3, {3, 3}, {0, 2}, false)}},
        Convolutions{"ManySmallKernelRows", {conv_pool_shape(10, {6, 7}, 16, {3, 3})}},
        Convolutions{"MoreKernelRowsThanThreads",
                     {conv_pool_shape(1, {17, 18}, 6, {5, 5}), conv_pool_shape(6, {6, 7}, 16, {5, 5})}},
        Convolutions{"OnePooledOutput", {conv_pool_shape(4, {6, 6}, 6, {5, 5})}},
        Convolutions{"ManyInputChannels", {conv_pool_shape(12, {8, 8}, 8, {3, 3}, {1, 1})}},
        // 49 pooled outputs are spread over 60 sums per input channel: two channels fit at a time.
        Convolutions{"GroupsOfInputChannels", {conv_pool_shape(3, {18, 18}, 4, {5, 5})}}),
    kName);

// Blocks of the GPU take several images, and there are more images than blocks.
TEST(ConvPoolOfManyImages, GivesTheLastTheBitsThatItHasAlone) {
  const ConvPoolShape s = conv_pool_shape(1, {4, 4}, 2, {3, 3});
  const std::vector<Parameters> parameters = random_parameters({s});
  constexpr int kImages = 1100;
  const Floats in = random_floats(kImages * 16, 1), gradient = random_floats(kImages * 2, 2);
  const Result all = run({"", {s}}, parameters, in, gradient, kImages, conv_pool_gradient_slices(kImages));
  const Result last =
      run({"", {s}}, parameters, {in.end() - 16, in.end()}, {gradient.end() - 2, gradient.end()}, 1, 1);
  EXPECT_EQ(Floats(all.outputs[0].end() - 2, all.outputs[0].end()), last.outputs[0]);
  EXPECT_EQ(Floats(all.grad_in.end() - 16, all.grad_in.end()), last.grad_in);
}

}  // namespace sweep::cuda::conv_pool_test
