#include "runmanager/tensorboard/run_log.h"

#include "runmanager/tensorboard/captioned_grid.h"
#include "tests/support/test.h"

namespace sweep::run_log_test {

std::vector<std::uint8_t> some_pixels(std::size_t count) {
  std::vector<std::uint8_t> pixels;
  for (std::size_t i = 0; i < count; ++i) pixels.push_back(static_cast<std::uint8_t>(i * 37));
  return pixels;
}

Subset pictures(TargetArray targets, std::size_t count) {
  TensorDataset set{.shape = {1, 4, 4}, .samples = {some_pixels(16 * count)}, .targets = std::move(targets)};
  return {std::make_shared<const TensorDataset>(std::move(set)), 0, count};
}

Run labelled(std::vector<std::string> class_names) {
  Run run;
  run.class_names = std::move(class_names);
  run.log.images = 2;
  run.log.image_labels = true;
  return run;
}

std::string captioned(std::size_t count, const std::vector<std::string>& captions) {
  return draw_captioned_grid(
             some_pixels(16 * count),
             {.count = static_cast<std::int64_t>(count), .channels = 1, .height = 4, .width = 4}, captions, 8)
      .bytes;
}

TEST(ImageGridCache, WritesTheClassesBelowTheFirstBatchWhereWanted) {
  const DataLoader loader(pictures(MaybeOwnedArray<std::int32_t>(std::vector<std::int32_t>{1, 0, 1}), 3),
                          {.batch_size = 3});
  ImageGridCache grids;
  sweep::Run run = labelled({"cat", "dog"});
  EXPECT_EQ(grids.first_batch(loader, run)->bytes, captioned(2, {"dog", "cat"}));
  run.log.image_labels = false;
  const tbwriter::EncodedImage* plain = grids.first_batch(loader, run);
  EXPECT_EQ(plain->height, 4 + 2 * 2) << "the grid with captions is not the one without";
  EXPECT_EQ(grids.first_batch(loader, labelled({"cat", "dog"}))->bytes, captioned(2, {"dog", "cat"}));
}

TEST(ImageGridCache, ShowsClassesWithoutNamesAndNumbersAsNumbers) {
  const DataLoader classes(pictures(MaybeOwnedArray<std::int32_t>(std::vector<std::int32_t>{1, 0}), 2),
                           {.batch_size = 2});
  EXPECT_EQ(ImageGridCache().first_batch(classes, labelled({}))->bytes, captioned(2, {"1", "0"}));
  const DataLoader numbers(pictures(MaybeOwnedArray<float>(std::vector<float>{0.5f, -2, 1e6f, 12.3456f}), 2),
                           {.batch_size = 2});
  EXPECT_EQ(ImageGridCache().first_batch(numbers, labelled({}))->bytes,
            captioned(2, {"0.5, -2", "1e+06, 12.35"}));
}

TEST(RunLog, ShowsKeysThatTheRunIsNotSweptOver) {
  EXPECT_THAT(to_hparams({{"optimizer", "adam"}}, {{"momentum", 0.0}}),
              ElementsAre(Pair("optimizer", tbwriter::HParamValue("adam")),
                          Pair("momentum", tbwriter::HParamValue(0.0))));
}

std::vector<std::string> tags_of(const tbwriter::CustomScalarsLayout& layout) {
  std::vector<std::string> tags;
  for (const tbwriter::ChartCategory& category : layout) {
    for (const tbwriter::Chart& chart : category.charts) {
      for (const std::string& tag : std::get<tbwriter::MultilineChart>(chart.content).tags)
        tags.push_back(tag);
    }
  }
  return tags;
}

TEST(ScalarsLayout, HasTheMeasuresOfTheTask) {
  const auto classes = tags_of(scalars_layout(false, true)), numbers = tags_of(scalars_layout(true, true));
  EXPECT_THAT(classes,
              ElementsAre("Loss/train$", "Loss/validation$", "Accuracy/train$", "Accuracy/validation$",
                          "Duration/epoch_seconds$", "Time/images_per_second$"));
  EXPECT_THAT(numbers, Contains("R2/validation$"));
  EXPECT_THAT(numbers, Contains("MAE/train$"));
  EXPECT_THAT(numbers, Not(Contains("Accuracy/train$")));
  EXPECT_THAT(tags_of(scalars_layout(false, false)), Not(Contains(HasSubstr("validation"))));
}

}  // namespace sweep::run_log_test
