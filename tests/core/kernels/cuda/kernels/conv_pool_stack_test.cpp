// The kernel that takes small batches from their pixels to the gradients of the stack: the same bits as those
// of the two kernels that it stands for.
#include "core/kernels/cuda/kernels/conv_pool_stack.h"

#include "core/base/random.h"
#include "core/kernels/cuda/kernels/linear.h"
#include "core/kernels/cuda/kernels/optimizer.h"
#include "tests/core/kernels/cuda/kernels/any_device.h"

namespace sweep::cuda::conv_pool_stack_test {

// 11 × 11 → 3 @ 3 × 3, with padding → 5 × 5 → 4 @ 3 × 3, with padding → 2 × 2, and 4 @ 3 × 3 on 2 channels of
// 6 × 6 → 2 × 2.
constexpr ConvPoolShape kFirst = test::conv_pool_shape(1, {11, 11}, 3, {3, 3}, {1, 1}),
                        kSecond = test::conv_pool_shape(3, {5, 5}, 4, {3, 3}, {1, 1}),
                        kAlone = test::conv_pool_shape(2, {6, 6}, 4, {3, 3}, {0, 0}, false);
constexpr int kFeatures = 16;  // of both

struct Case {
  std::string name;
  ConvPoolChain chain;
  int classes;
  int images;
  bool reads_batch, trains, compares;
  LossOptions::Kind loss = LossOptions::Kind::kCrossEntropy;
};

// Device arrays with random numbers, the same in every set.
class Arrays {
 public:
  explicit Arrays(Stream& stream) : stream_(stream) {}

  template <class T = float>
  T* add(int count) {
    RandomStream random(10 + arrays_.size(), RandomUse::kSearch);
    std::vector<T> values(static_cast<std::size_t>(count));
    for (T& value : values) value = static_cast<T>(static_cast<float>(random.below(2001)) / 1e3f - 1);
    return add(values);
  }
  template <class T>
  T* add(const std::vector<T>& values) {
    const std::size_t bytes = values.size() * sizeof(T);
    std::vector<std::byte> all(bytes);
    std::memcpy(all.data(), values.data(), bytes);
    arrays_.push_back(to_device(stream_, all, "a test"));
    return reinterpret_cast<T*>(arrays_.back().data());
  }
  // All bytes of all arrays.
  std::vector<std::vector<std::byte>> contents() const {
    std::vector<std::vector<std::byte>> all;
    for (const Array<std::byte>& array : arrays_) all.push_back(to_host(stream_, array.data(), array.size()));
    return all;
  }

 private:
  Stream& stream_;
  std::vector<Array<std::byte>> arrays_;
};

std::vector<std::vector<std::byte>> contents_behind(const Case& c, bool together) {
  Stream stream;
  Arrays arrays(stream);
  const ConvPoolShape& first = c.chain.shapes[0];
  const int pixels = first.in_channels * first.in_height * first.in_width;
  const auto images = static_cast<std::size_t>(c.images);
  std::vector<std::uint32_t> rows(images);
  std::vector<std::int32_t> labels(images);
  for (int i = 0; i < c.images; ++i) {
    rows[static_cast<std::size_t>(i)] = static_cast<std::uint32_t>((i * 3 + 1) % c.images);
    labels[static_cast<std::size_t>(i)] = i * 7 % c.classes;
  }
  std::vector<std::uint8_t> bytes(images * static_cast<std::size_t>(pixels));
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i * i % 251);
  StepInput step{.gradient_scale = 0.125f, .loss_scale = 0.5};
  step.pixels = arrays.add(bytes);
  if (c.loss == LossOptions::Kind::kMse) {
    step.numbers = arrays.add(c.images * c.classes);
  } else {
    step.labels = arrays.add(labels);
  }
  const StepInput* input = arrays.add(std::vector{step});
  const std::uint32_t* device_rows = arrays.add(rows);

  ConvPoolInput in{.floats = arrays.add(c.images * pixels)};
  if (c.reads_batch) in = {nullptr, input, device_rows, {}};
  std::vector<ConvPoolArrays> convolutions;
  for (int l = 0; l < c.chain.count; ++l) {
    const ConvPoolShape& s = c.chain.shapes[l];
    convolutions.push_back({.weight = arrays.add(s.weights()),
                            .bias = s.bias ? arrays.add(s.out_channels) : nullptr,
                            .out = arrays.add(c.images * s.outputs()),
                            .argmax = arrays.add<std::uint8_t>(c.images * s.argmax_bytes())});
  }
  constexpr int kHidden = 7;
  const LinearStackShape shape{
      .count = 2,
      .layers = {{.inputs = kFeatures, .outputs = kHidden, .active = true, .activation = Activation::kTanh},
                 {.inputs = kHidden, .outputs = c.classes}}};
  LinearStackArrays stack;
  for (int l = 0; l < shape.count; ++l) {
    const auto& [inputs, outputs, active, activation, coefficient] = shape.layers[l];
    stack.layers[l] = {.weight = arrays.add(inputs * outputs),
                       .bias = l == 0 ? arrays.add(outputs) : nullptr,
                       .out = arrays.add(c.images * outputs),
                       .grad = arrays.add(c.images * outputs)};
  }
  stack.in = convolutions.back().out;
  stack.grad_in = arrays.add(c.images * kFeatures);
  const LossParameters loss{.kind = c.loss};
  const LinearStackPass pass{.images = c.images,
                             .input = input,
                             .rows = device_rows,
                             .loss = c.compares ? &loss : nullptr,
                             .backward = c.trains,
                             .totals = arrays.add(std::vector<Totals>(kStackTotals))};
  const test::KernelCount count;
  if (together) {
    conv_pool_stack(stream, c.chain, in, convolutions.data(), shape, stack, pass);
  } else {
    conv_pool_forward(stream, c.chain, c.images, in, convolutions.data());
    linear_stack(stream, shape, stack, pass);
  }
  stream.wait();
  count.expect(together ? 1 : 2);
  std::vector<std::vector<std::byte>> all = arrays.contents();
  // The addresses in the StepInput differ; the kernels do not write it.
  std::erase_if(all, [](const auto& array) { return array.size() == sizeof(StepInput); });
  return all;
}

TEST(ConvPoolStack, HasTheBitsOfTheKernelsThatItStandsFor) {
  const ConvPoolChain two{2, {kFirst, kSecond}}, one{1, {kAlone}};
  const std::vector<Case> cases{
      {"a training on classes", two, 10, 9, true, true, true},
      {"a single image", two, 3, 1, true, true, true},
      {"one convolution on floats, with numbers as targets", one, 5, 6, false, true, true,
       LossOptions::Kind::kMse},
      {"more classes than the top ones", two, 12, 5, true, true, true},
      {"an evaluation", one, 4, 5, true, false, true},
      {"outputs alone", two, 4, 5, true, false, false},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    ASSERT_TRUE(conv_pool_fits(c.chain, false));
    const auto apart = contents_behind(c, false);
    test::in_every_order([&] { EXPECT_EQ(contents_behind(c, true), apart); });
  }
}

// The optimizer's kernel that computes the weight gradients of a stack of linear layers itself: the same bits
// as those of the kernels that it stands for.

struct Step {
  std::vector<LinearShape> shapes;
  int images;
  OptimizerOptions optimizer = AdamOptions{};
};

// A layer in front of the stack has so many parameters, and as many gradients as a batch has images.
constexpr int kOthers = 37;

// Parameters, gradients and the optimizer's state after a step with the gradients of the stack's weights, in
// the same kernel or in one of their own.
std::vector<std::vector<float>> outcome_of(const Step& step, bool together) {
  Stream stream;
  Arrays arrays(stream);
  const int slices = linear_gradient_slices(step.shapes, step.images);
  std::vector<GradientSource> sources{{arrays.add(step.images * kOthers), 0, kOthers, step.images, kOthers}};
  std::vector<LinearGradient> layers;
  int parameters = kOthers;
  for (const LinearShape& shape : step.shapes) {
    const int floats = shape.gradient_floats();
    layers.push_back({shape, arrays.add(step.images * shape.in_features),
                      arrays.add(step.images * shape.out_features), arrays.add(slices * floats)});
    sources.push_back({layers.back().gradient, parameters, floats, slices, floats});
    parameters += floats;
  }
  const auto count = static_cast<std::size_t>(parameters);
  OptimizerArrays all{arrays.add(parameters), arrays.add(parameters), {}};
  std::vector<const float*> results = {all.parameters, all.gradient};
  for (std::size_t s = 0; s < state_names(step.optimizer).size(); ++s)
    results.push_back(all.state[s] = arrays.add(std::vector<float>(count, 0.25f)));
  const StepInput* input =
      arrays.add(std::vector{StepInput{.factors = step_factors(step.optimizer, 0.1, 3)}});
  const Optimizer optimizer(stream, step.optimizer, 0, sources, all, step.shapes.size());
  EXPECT_TRUE(optimizer.takes_stack(step.images, slices));
  const test::KernelCount kernels;
  if (together) {
    optimizer.step_with_stack(stream, input, layers, step.images, slices);
  } else {
    linear_backward_weights(stream, layers, step.images, slices);
    optimizer.step(stream, input);
  }
  std::vector<std::vector<float>> outcome;
  for (const float* result : results) outcome.push_back(to_host(stream, result, count));
  kernels.expect(together ? 1 : 2);
  return outcome;
}

TEST(StackStep, HasTheBitsOfTheKernelsThatItStandsFor) {
  const LinearShape wide{192, 120, true}, middle{60, 33, true}, last{17, 10, false}, one{1, 1, true};
  const std::vector<Step> steps = {
      {{wide, middle, last}, 100},
      {{middle}, 1},
      {{one, last}, 65, SgdOptions{}},
      {{last}, 132, SgdOptions{.momentum = 0.9, .nesterov = true}},
      {{middle, one}, 256, RmspropOptions{.momentum = 0.5, .centered = true}},
  };
  for (const Step& step : steps) {
    SCOPED_TRACE(std::to_string(step.shapes.size()) + " layers, " + std::to_string(step.images) + " images");
    const auto apart = outcome_of(step, false);
    test::in_every_order([&] { EXPECT_EQ(outcome_of(step, true), apart); });
  }
}

}  // namespace sweep::cuda::conv_pool_stack_test
