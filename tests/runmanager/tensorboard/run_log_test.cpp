#include "runmanager/tensorboard/run_log.h"

#include "runmanager/tensorboard/captioned_grid.h"
#include "tests/support/run_world.h"
#include "tests/support/test_networks.h"

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

TEST(FirstBatchGrid, HasTheClassesBelowTheSamplesWhereWanted) {
  const DataLoader loader(pictures(MaybeOwnedArray<std::int32_t>(std::vector<std::int32_t>{1, 0, 1}), 3),
                          {.batch_size = 3});
  sweep::Run run = labelled({"cat", "dog"});
  EXPECT_EQ(first_batch_grid(loader, run)->bytes, captioned(2, {"dog", "cat"}));
  run.log.image_labels = false;
  EXPECT_EQ(first_batch_grid(loader, run)->height, 4 + 2 * 2);
}

TEST(FirstBatchGrid, ShowsClassesWithoutNamesAndNumbersAsNumbers) {
  const DataLoader classes(pictures(MaybeOwnedArray<std::int32_t>(std::vector<std::int32_t>{1, 0}), 2),
                           {.batch_size = 2});
  EXPECT_EQ(first_batch_grid(classes, labelled({}))->bytes, captioned(2, {"1", "0"}));
  const DataLoader numbers(pictures(MaybeOwnedArray<float>(std::vector<float>{0.5f, -2, 1e6f, 12.3456f}), 2),
                           {.batch_size = 2});
  EXPECT_EQ(first_batch_grid(numbers, labelled({}))->bytes, captioned(2, {"0.5, -2", "1e+06, 12.35"}));
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
      for (const std::string& tag : chart.tags) tags.push_back(tag);
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

TEST(DataTable, HasARowPerClassWithItsShareOfEachPart) {
  const Json balance = Json::parse(R"([
      {"part": "train", "samples": 8, "classes": {"cat": 6, "a_dog": 2}},
      {"part": "test", "samples": 4, "classes": {"cat": 4, "a_dog": 0}}])");
  EXPECT_EQ(data_table(balance),
            "| class | train |  | test |  |\n| --- | --- | --- | --- | --- |\n"
            "| cat | 6 | 75 % | 4 | 100 % |\n"
            "| a\\_dog | 2 | 25 % | 0 | 0 % |\n"
            "| all | 8 |  | 4 |  |\n");
}

TEST(DataTable, HasARowPerTarget) {
  const Json balance = Json::parse(R"([
      {"part": "train", "samples": 8, "targets": {"price": {"mean": 1.5, "deviation": 0.25}}}])");
  EXPECT_EQ(data_table(balance),
            "| target | train: mean | deviation |\n| --- | --- | --- |\n| price | 1.5 | 0.25 |\n");
}

TEST(DataTable, IsNothingWithoutData) {
  EXPECT_EQ(data_table(nullptr), "");
  EXPECT_EQ(data_table(Json::array()), "");
}

TEST(NetworkTable, HasARowPerLayerAndTheSums) {
  const NetworkSpec spec{
      "", {test::conv("conv1", 6, 5), test::relu("relu1"), test::flatten("flat"), test::linear("out", 10)}};
  // conv1: 6·(25 + 1) = 156 parameters, 2·25·6·24·24 = 172,800 operations; out: 3,456·10 + 10 = 34,570
  // parameters, 2·34,560 = 69,120 operations.
  const auto lines = lines_of(network_table(Network(spec, {1, 28, 28})));
  EXPECT_THAT(lines,
              ElementsAre("| layer | type | arguments | output | parameters | FLOPs |",
                          "| --- | --- | --- | --- | --- | --- |", "| input |  |  | 1 × 28 × 28 |  |  |",
                          "| conv1 | conv2d | out\\_channels 6, kernel\\_size \\[5, 5\\] | 6 × 24 × 24 | 156 "
                          "| 172\u202F800 |",
                          "| relu1 | relu |  | 6 × 24 × 24 |  |  |", "| flat | flatten |  | 3456 |  |  |",
                          "| out | linear | out\\_features 10 | 10 | 34\u202F570 | 69\u202F120 |",
                          "| all |  |  |  | 34\u202F726 | 241\u202F920 |"));
}

}  // namespace sweep::run_log_test
