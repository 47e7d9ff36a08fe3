// The optimizer's kernel that computes the weight gradients of a stack of linear layers itself: the same bits
// as those of the kernels that it stands for.

#include "core/base/random.h"
#include "core/kernels/cuda/kernels/linear.h"
#include "core/kernels/cuda/kernels/optimizer.h"
#include "tests/core/kernels/cuda/kernels/any_device.h"

#include "tests/support/test.h"

namespace sweep::cuda::stack_step_test {

std::vector<float> random_values(std::size_t count, std::uint64_t seed) {
  RandomStream random(seed, RandomUse::kSearch);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(random.below(20001)) / 1e4f - 1;
  return values;
}

struct Step {
  std::vector<LinearShape> shapes;
  int images;
  OptimizerOptions optimizer = AdamOptions{};
};

struct Outcome {
  std::vector<float> parameters, gradient, first_state;
  bool operator==(const Outcome&) const = default;
};

// A layer in front of the stack has so many parameters, and as many gradients as a batch has images.
constexpr int kOthers = 37;

// A step with the gradients of the stack's weights, in the same kernel or in one of their own.
Outcome outcome_of(const Step& step, bool together) {
  Stream stream;
  const auto images = static_cast<std::size_t>(step.images);
  const int slices = linear_gradient_slices(step.shapes, step.images);
  std::vector<Array<float>> arrays;
  const auto random_array = [&](std::size_t count) {
    arrays.push_back(to_device(stream, random_values(count, arrays.size()), "a test"));
    return arrays.back().data();
  };
  std::vector<GradientSource> sources{{random_array(images * kOthers), 0, kOthers, step.images, kOthers}};
  std::vector<LinearGradient> layers;
  int parameters = kOthers;
  for (const LinearShape& shape : step.shapes) {
    const auto floats = static_cast<std::size_t>(shape.gradient_floats());
    layers.push_back({shape, random_array(images * static_cast<std::size_t>(shape.in_features)),
                      random_array(images * static_cast<std::size_t>(shape.out_features)),
                      random_array(static_cast<std::size_t>(slices) * floats)});
    sources.push_back(
        {layers.back().gradient, parameters, shape.gradient_floats(), slices, shape.gradient_floats()});
    parameters += shape.gradient_floats();
  }
  const auto count = static_cast<std::size_t>(parameters);
  const OptimizerArrays all{random_array(count), random_array(count), {}};
  OptimizerArrays with_state = all;
  const std::size_t states = state_names(step.optimizer).size();
  for (std::size_t s = 0; s < states; ++s) {
    arrays.push_back(to_device(stream, std::vector<float>(count, 0.25f), "a test"));
    with_state.state[s] = arrays.back().data();
  }
  const Array<StepInput> input =
      to_device(stream, std::vector{StepInput{.factors = step_factors(step.optimizer, 0.1, 3)}}, "a test");
  const Optimizer optimizer(stream, step.optimizer, 0, sources, with_state, step.shapes.size());
  EXPECT_TRUE(optimizer.takes_stack(step.images, slices));
  const test::KernelCount kernels;
  if (together) {
    optimizer.step_with_stack(stream, input.data(), layers, step.images, slices);
  } else {
    linear_backward_weights(stream, layers, step.images, slices);
    optimizer.step(stream, input.data());
  }
  Outcome outcome{to_host(stream, all.parameters, count), to_host(stream, all.gradient, count), {}};
  kernels.expect(together ? 1 : 2);
  if (states > 0) outcome.first_state = to_host(stream, with_state.state[0], count);
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
    const Outcome apart = outcome_of(step, false);
    test::in_every_order([&] { EXPECT_EQ(outcome_of(step, true), apart); });
  }
}

}  // namespace sweep::cuda::stack_step_test
