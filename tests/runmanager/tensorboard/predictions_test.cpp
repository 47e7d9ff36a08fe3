#include "runmanager/tensorboard/predictions.h"

#include "runmanager/tensorboard/captioned_grid.h"
#include "runmanager/text/table_text.h"
#include "tests/support/run_world.h"

namespace sweep::predictions_test {

using ::testing::FieldsAre;

// torch.softmax(torch.tensor([[1., 2., 3.], [1000., 0., 0.]]), 1)
TEST(SoftmaxRows, MatchesPyTorchAlsoForLargeValues) {
  const std::vector<float> outputs = {1, 2, 3, 1000, 0, 0};
  EXPECT_THAT(softmax_rows(outputs, 3),
              Pointwise(FloatNear(1e-6f), {0.09003057f, 0.24472848f, 0.66524094f, 1.0f, 0.0f, 0.0f}));
}

TEST(SoftmaxRows, StaysFromZeroToOneAndKeepsWhatIsNoNumber) {
  std::vector<float> outputs;
  for (int i = 0; i < 3000; ++i)
    outputs.push_back(std::sin(static_cast<float>(i * i)) * static_cast<float>(i));
  for (const float p : softmax_rows(outputs, 3)) EXPECT_TRUE(p >= 0 && p <= 1) << p;
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              infinity = std::numeric_limits<float>::infinity();
  for (const float bad : {nan, infinity}) {
    for (const float p : softmax_rows(std::vector<float>{1, bad, 2}, 3)) EXPECT_TRUE(std::isnan(p)) << p;
  }
}

// sklearn.metrics.confusion_matrix([0, 1, 2, 2, 1], [0, 2, 2, 1, 1])
TEST(ConfusionMatrix, HasARowPerLabelAndAColumnPerPrediction) {
  const std::vector<float> outputs = {9, 0, 0, 0, 0, 9, 0, 0, 9, 0, 9, 0, 0, 9, 0};
  const std::vector<std::int32_t> labels = {0, 1, 2, 2, 1};
  EXPECT_THAT(confusion_matrix(outputs, labels, 3), ElementsAre(1, 0, 0, 0, 1, 1, 0, 1, 1));
}

TEST(MostConfidentMistakes, ComeFirstAndKeepTheirOrderWhenEqual) {
  const std::vector<float> probabilities = {.6f, .4f, .1f, .9f, .9f, .1f, .4f, .6f, .4f, .6f};
  const std::vector<std::int32_t> labels = {1, 0, 0, 0, 0};
  EXPECT_THAT(most_confident_mistakes(probabilities, labels, 2, 10),
              ElementsAre(FieldsAre(1u, 0, 1, 0.9f), FieldsAre(0u, 1, 0, 0.6f), FieldsAre(3u, 0, 1, 0.6f),
                          FieldsAre(4u, 0, 1, 0.6f)));
  EXPECT_EQ(most_confident_mistakes(probabilities, labels, 2, 1).size(), 1u);
}

TEST(DrawConfusionMatrix, GrowsWithTheLargestCount) {
  const std::vector<std::string> names = {"a", "b"};
  const auto small = draw_confusion_matrix(std::vector<std::int64_t>{1, 2, 3, 4}, names);
  const auto large = draw_confusion_matrix(std::vector<std::int64_t>{1, 2, 3, 40000}, names);
  EXPECT_EQ(small.width, small.height);
  EXPECT_GT(large.width, small.width);
  EXPECT_EQ(small.channels, 3);
}

std::vector<proto::Event> logged(const Subset& samples, const std::vector<float>& outputs,
                                 const std::vector<std::string>& names) {
  TemporaryDirectory directory;
  {
    tbwriter::SummaryWriter writer(directory.path());
    log_predictions(writer, samples, outputs, names, "validation", 4);
  }
  return tbwriter::read_run(directory.path());
}

TEST(LogPredictions, WritesACurvePerClassTheMatrixAndTheMistakes) {
  const Dataset data = small_dataset();
  std::vector<float> outputs;
  for (std::size_t i = 0; i < data.validation.count; ++i) outputs.insert(outputs.end(), {2, 0, 0});
  const auto events = logged(data.validation, outputs, data.class_names);
  for (const char* tag :
       {"pr_curve/a", "pr_curve/b/c", "pr_curve/d", "predictions/confusion_matrix",
        "predictions/confusion_counts", "predictions/misclassified", "predictions/misclassified_list"}) {
    EXPECT_EQ(tbwriter::values_of(events, tag).size(), 1u) << tag;
  }
  // Labels 1, 2, 0, … from sample 40: of 10, 3 are class 0, and all are predicted as it.
  EXPECT_THAT(tbwriter::values_of(events, "predictions/confusion_counts")[0].tensor().string_val(0),
              HasSubstr("| a | 3 | 0 | 0 | 100.0 % |"));
  // Seven mistakes, four a row: 4 pixels wide, 16 times enlarged, with gaps of 4.
  const auto picture = tbwriter::values_of(events, "predictions/misclassified")[0].image();
  EXPECT_EQ(picture.width(), 4 * (64 + 4) + 4);
  EXPECT_EQ(picture.height(), 2 * (64 + 2 * 17 + 2 * 4) + 4);
}

TEST(SigmoidsOf, AreOfEachOutput) {
  EXPECT_THAT(sigmoids_of({0, 1, -1, 1000}), ElementsAre(0.5f, FloatEq(0.7310586f), FloatEq(0.2689414f), 1));
}

TEST(LogPredictions, WritesNothingForOutputsThatAreNotFinite) {
  const Dataset data = small_dataset();
  const std::vector<float> outputs(30, std::numeric_limits<float>::quiet_NaN());
  EXPECT_TRUE(tbwriter::values_of(logged(data.validation, outputs, data.class_names), "pr_curve/a").empty());
}

// Records of events files have a limit.
TEST(LogPredictions, LeavesOutMatricesOfThousandsOfClassesAndPicturesThatAreTooLarge) {
  constexpr std::size_t kClasses = 5000, kSide = 4100;
  const auto set = std::make_shared<TensorDataset>(
      TensorDataset{{1, kSide, kSide}, std::vector<std::uint8_t>(kSide * kSide), std::vector{7}});
  std::vector<float> outputs(kClasses);
  outputs[3] = 1;
  const std::vector<std::string> names(kClasses, "name");
  EXPECT_EQ(logged({.set = set, .count = 1}, outputs, names).size(), 2u) << "only the beginning";
}

TEST(ShownPictures, FitIntoARecordWhateverTheirSize) {
  EXPECT_EQ(shown_pictures({1, 28, 28}, 64), 64u);
  EXPECT_EQ(shown_pictures({3, 640, 640}, 64), 40u);
  EXPECT_EQ(shown_pictures({3, 5000, 5000}, 64), 0u);
}

TEST(MarkdownTable, EscapesWhatWouldBreakIt) {
  const std::string table = markdown_table({{"a|b", "x\ny"}, {"<script>", "*_`"}});
  EXPECT_EQ(table, "| key | value |\n| --- | --- |\n| a&#124;b | x y |\n| &lt;script&gt; | \\*\\_\\` |\n");
}

TEST(MarkdownTable, FlattensObjectsToDottedKeysAndLayersToRows) {
  const std::string table = markdown_table(nlohmann::ordered_json::parse(
      R"({"a": {"b": 1, "c": [1, 2]}, "layers": [{"type": "relu"}, {"type": "linear"}], "e": {}})"));
  for (const char* row :
       {"| a.b | 1 |", "| a.c | \\[1,2\\] |", "| layers.1 | {\"type\":\"linear\"} |", "| e | {} |"}) {
    EXPECT_THAT(table, HasSubstr(row));
  }
}

}  // namespace sweep::predictions_test
