// Augmentation against its definition, written pixel by pixel, and through the loader.
#include "core/data/augment.h"

#include "core/base/random.h"
#include "core/data/data_loader.h"
#include "tests/support/test.h"

namespace sweep::data_augment_test {

constexpr AugmentStep kCrop{AugmentKind::kRandomCrop, 4}, kFlip{AugmentKind::kHorizontalFlip, 0},
    kCutout{AugmentKind::kCutout, 5};

// The image whose pixel is pixel(c, y, x).
template <typename Pixel>
std::vector<std::uint8_t> image_of(const Shape& shape, Pixel pixel) {
  std::vector<std::uint8_t> image;
  for (std::int64_t c = 0; c < shape[0]; ++c)
    for (std::int64_t y = 0; y < shape[1]; ++y)
      for (std::int64_t x = 0; x < shape[2]; ++x) image.push_back(static_cast<std::uint8_t>(pixel(c, y, x)));
  return image;
}

// The definition in augment.h, one pixel at a time.
std::vector<std::uint8_t> reference(std::vector<std::uint8_t> image, const Shape& shape,
                                    const std::vector<AugmentStep>& steps, const AugmentKey& key) {
  for (std::uint32_t i = 0; i < steps.size(); ++i) {
    const auto random =
        philox4x32({key.sample, 6 + i * 65536, key.epoch, key.repeat},
                   {static_cast<std::uint32_t>(key.seed), static_cast<std::uint32_t>(key.seed >> 32)});
    const auto scaled = [&](int word, std::int64_t bound) {
      return static_cast<std::int64_t>(std::uint64_t{random[static_cast<std::size_t>(word)]} *
                                       static_cast<std::uint64_t>(bound) / 4294967296u);
    };
    const std::int64_t height = shape[1], width = shape[2], n = steps[i].amount;
    const auto old = [&](std::int64_t c, std::int64_t y, std::int64_t x) -> std::uint8_t {
      if (y < 0 || y >= height || x < 0 || x >= width) return 0;
      return image[static_cast<std::size_t>((c * height + y) * width + x)];
    };
    const std::int64_t top =
        steps[i].kind == AugmentKind::kRandomCrop ? scaled(0, 2 * n + 1) : scaled(0, height);
    const std::int64_t left =
        steps[i].kind == AugmentKind::kRandomCrop ? scaled(1, 2 * n + 1) : scaled(1, width);
    std::vector<std::uint8_t> changed = image_of(shape, [&](std::int64_t c, std::int64_t y, std::int64_t x) {
      switch (steps[i].kind) {
        case AugmentKind::kRandomCrop:  // pixel (top + y, left + x) of the padded image
          return old(c, top + y - n, left + x - n);
        case AugmentKind::kHorizontalFlip:
          return old(c, y, random[0] >= 2147483648u ? width - 1 - x : x);
        case AugmentKind::kCutout:
          break;
      }
      const bool is_cut =
          y >= top - n / 2 && y < top - n / 2 + n && x >= left - n / 2 && x < left - n / 2 + n;
      return is_cut ? std::uint8_t{0} : old(c, y, x);
    });
    image = std::move(changed);
  }
  return image;
}

TEST(Augment, FollowsItsDefinition) {
  for (const Shape& shape : {Shape{3, 9, 7}, Shape{1, 6, 11}, Shape{2, 5, 5}}) {
    const auto image = image_of(shape, [&](auto c, auto y, auto x) { return 1 + c * 77 + y * 11 + x; });
    const std::vector<AugmentStep> all = {kCrop, kFlip, kCutout};
    for (const std::vector<AugmentStep>& steps :
         {std::vector{kCrop}, std::vector{kFlip}, std::vector{kCutout}, all,
          std::vector{kFlip, kCrop, kCrop}}) {
      for (std::uint32_t sample = 0; sample < 60; ++sample) {
        const AugmentKey key{
            .seed = 0x123456789abcdefull, .repeat = 2, .epoch = sample / 7, .sample = sample};
        std::vector<std::uint8_t> changed = image;
        augment_image(changed, shape, steps, key);
        ASSERT_EQ(changed, reference(image, shape, steps, key)) << "sample " << sample;
        std::vector<float> floats(image.begin(), image.end());
        augment_image(floats, shape, steps, key);
        ASSERT_TRUE(std::equal(changed.begin(), changed.end(), floats.begin())) << "floats change alike";
      }
    }
  }
}

Subset many_images() {
  std::vector<std::uint8_t> pixels(20 * 30);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(1 + i % 251);
  std::vector<std::int32_t> labels(20);
  std::iota(labels.begin(), labels.end(), 0);
  return {std::make_shared<TensorDataset>(TensorDataset{{1, 6, 5}, pixels, labels}), 2, 17};
}

// Pixels of each sample in an epoch, by its label.
std::map<std::int32_t, std::vector<std::uint8_t>> epoch_of(const LoaderOptions& options,
                                                           std::uint32_t epoch) {
  DataLoader loader(many_images(), options);
  loader.begin_epoch(0);
  loader.begin_epoch(epoch);
  std::map<std::int32_t, std::vector<std::uint8_t>> images;
  while (const Batch* batch = loader.next()) {
    for (const std::uint32_t row : batch->indices) {
      const auto pixels = batch->pixels().subspan(row * 30, 30);
      images[batch->labels()[row]].assign(pixels.begin(), pixels.end());
    }
  }
  return images;
}

TEST(AugmentingLoader, GivesTheSameImagesForAnyOrderBatchSizeAndNumberOfWorkers) {
  const std::vector<AugmentStep> steps = {{AugmentKind::kRandomCrop, 2}, kFlip, {AugmentKind::kCutout, 3}};
  const LoaderOptions plain{.batch_size = 17, .seed = 9, .repeat = 1, .augment = steps};
  const auto expected = epoch_of(plain, 3);
  ASSERT_EQ(expected.size(), 17u);
  const Subset samples = many_images();
  for (const auto& [label, image] : expected) {
    const auto original = samples.set->pixels().subspan(static_cast<std::size_t>(label) * 30, 30);
    EXPECT_EQ(image,
              reference({original.begin(), original.end()}, samples.set->shape, steps,
                        {.seed = 9, .repeat = 1, .epoch = 3, .sample = static_cast<std::uint32_t>(label)}));
  }
  for (const int workers : {0, 1, 3}) {
    for (const std::size_t batch : {1u, 4u, 100u}) {
      for (const bool shuffle : {false, true}) {
        LoaderOptions options = plain;
        options.batch_size = batch;
        options.shuffle = shuffle;
        options.num_workers = workers;
        EXPECT_EQ(epoch_of(options, 3), expected) << workers << " " << batch << " " << shuffle;
      }
    }
  }
  LoaderOptions other = plain;
  EXPECT_NE(epoch_of(other, 4), expected) << "each epoch is another one";
  other.repeat = 2;
  EXPECT_NE(epoch_of(other, 3), expected);
  EXPECT_EQ(samples.set->pixels()[60], 61) << "the set itself never changes";
}

TEST(AugmentingLoader, RefusesWhatCannotBeChanged) {
  const auto error = [](Subset samples, AugmentStep step) {
    return test::message_of<ConfigError>(
        [&] { const DataLoader loader(std::move(samples), {.batch_size = 2, .augment = {step}}); });
  };
  auto flat = std::make_shared<TensorDataset>(*many_images().set);
  flat->shape = {30};
  EXPECT_THAT(error({flat, 0, 20}, kFlip),
              HasSubstr("augment changes images, [channels, height, width], but the "
                        "samples are "));
  EXPECT_THAT(error(many_images(), {AugmentKind::kRandomCrop, 6}), HasSubstr("got 6 pixels"));
  EXPECT_THAT(error(many_images(), {AugmentKind::kCutout, 0}), HasSubstr("want 1 to 5"));
}

}  // namespace sweep::data_augment_test
