// Images that the device gathers and augments, against those of the host, bit for bit.
#include "core/kernels/cuda/kernels/augment.h"

#include "core/base/random.h"
#include "core/data/augment.h"
#include "core/kernels/cuda/runtime/runtime.h"
#include "tests/core/kernels/cuda/kernels/any_device.h"

namespace sweep::cuda::kernels_augment_test {

constexpr AugmentStep kCrop{AugmentKind::kRandomCrop, 3}, kFlip{AugmentKind::kHorizontalFlip, 0},
    kCutout{AugmentKind::kCutout, 4}, kWide{AugmentKind::kCutout, 9};

// `T`: uint8_t with classes, or float with three numbers per sample.
template <typename T>
void expect_same_images(const Shape& shape, const std::vector<AugmentStep>& steps) {
  constexpr bool kFloats = std::is_same_v<T, float>;
  constexpr std::size_t kSamples = 12;
  using Target = std::conditional_t<kFloats, float, std::int32_t>;
  constexpr std::size_t kTargets = kFloats ? 3 : 1;
  const std::size_t values = element_count(shape);
  RandomStream random(1, RandomUse::kSearch);
  std::vector<T> samples;
  for (std::size_t i = 0; i < kSamples * values; ++i)
    samples.push_back(static_cast<T>(1 + random.below(255)));
  std::vector<Target> targets;
  for (std::size_t i = 0; i < kSamples * kTargets; ++i) targets.push_back(static_cast<Target>(i));
  const std::vector<std::uint32_t> rows = {7, 3, 3, 11, 0}, numbers = {70, 30, 31, 4000000000u, 0};

  Stream stream;
  const auto device_samples = to_device(stream, samples, "a test");
  const auto device_targets = to_device(stream, targets, "a test");
  StepInput input{.step = 9, .epoch = 4};
  if constexpr (kFloats) {
    input.floats = device_samples.data();
    input.numbers = device_targets.data();
  } else {
    input.pixels = device_samples.data();
    input.labels = device_targets.data();
  }
  const auto device_input = to_device(stream, std::vector<StepInput>{input}, "a test");
  const auto device_rows = to_device(stream, rows, "a test"),
             device_numbers = to_device(stream, numbers, "a test");
  const auto device_steps = to_device(stream, steps, "a test");
  const Array<T> made_samples(rows.size() * values, "a test");
  const Array<Target> made_targets(rows.size() * kTargets, "a test");
  const Array<StepInput> made_input(1, "a test");
  const Array<std::uint32_t> made_rows(rows.size(), "a test");
  const AugmentPlan plan{.steps = device_steps.data(),
                         .count = static_cast<int>(steps.size()),
                         .seed = 0x123456789abcdefu,
                         .repeat = 6,
                         .channels = static_cast<int>(shape[0]),
                         .height = static_cast<int>(shape[1]),
                         .width = static_cast<int>(shape[2]),
                         .targets = static_cast<int>(kTargets)};
  augment_samples(stream, device_input.data(), device_rows.data(), device_numbers.data(),
                  static_cast<int>(rows.size()), plan,
                  {reinterpret_cast<std::byte*>(made_samples.data()),
                   reinterpret_cast<std::byte*>(made_targets.data()), made_input.data(), made_rows.data()});

  const auto images = to_host(stream, made_samples.data(), rows.size() * values);
  const auto made = to_host(stream, made_input.data(), 1).at(0);
  EXPECT_EQ(to_host(stream, made_rows.data(), rows.size()), (std::vector<std::uint32_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(made.step, 9u);
  const void* read = kFloats ? static_cast<const void*>(made.floats) : made.pixels;
  const void* compared = kFloats ? static_cast<const void*>(made.numbers) : made.labels;
  EXPECT_EQ(read, made_samples.data());
  EXPECT_EQ(compared, made_targets.data());
  const auto copied = to_host(stream, made_targets.data(), rows.size() * kTargets);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto first = samples.begin() + static_cast<std::ptrdiff_t>(rows[i] * values);
    std::vector<T> expected(first, first + static_cast<std::ptrdiff_t>(values));
    augment_image(std::span<T>(expected), shape, steps,
                  {.seed = plan.seed, .repeat = 6, .epoch = 4, .sample = numbers[i]});
    const auto begin = images.begin() + static_cast<std::ptrdiff_t>(i * values);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), begin)) << "image " << i;
    for (std::size_t t = 0; t < kTargets; ++t)
      EXPECT_EQ(copied[i * kTargets + t], targets[rows[i] * kTargets + t]);
  }
}

TEST(AugmentSamples, GivesTheImagesOfTheHost) {
  test::in_every_order([] {
    for (const Shape& shape : {Shape{1, 28, 28}, Shape{3, 9, 7}, Shape{2, 1, 40}, Shape{1, 70, 61}}) {
      for (const std::vector<AugmentStep>& steps :
           {std::vector{kCrop}, {kFlip}, {kCutout}, {kCrop, kFlip, kCutout}, {kWide, kFlip, kCrop, kCrop}}) {
        expect_same_images<std::uint8_t>(shape, steps);
        expect_same_images<float>(shape, steps);
      }
    }
  });
}

}  // namespace sweep::cuda::kernels_augment_test
