// Precision, recall, F1 and errors, computed by hand.
#include "runmanager/inference/run_scores.h"

#include "tests/support/test.h"

namespace sweep::run_scores_test {

TEST(ClassScores, AreThoseOfAnExampleByHand) {
  // 4 of 6 cats and 3 of 4 dogs are right; the bird is taken for a cat; there is no fish.
  const std::vector<std::int64_t> counts = {4, 2, 0, 0,  //
                                            1, 3, 0, 0,  //
                                            1, 0, 0, 0,  //
                                            0, 0, 0, 0};
  const std::vector<ClassScores> scores = class_scores(counts, 4);
  EXPECT_EQ(scores[0].samples, 6);
  EXPECT_EQ(scores[0].predicted, 6);
  EXPECT_DOUBLE_EQ(scores[0].precision, 4.0 / 6);
  EXPECT_DOUBLE_EQ(scores[0].recall, 4.0 / 6);
  EXPECT_DOUBLE_EQ(scores[0].f1, 4.0 / 6);
  EXPECT_DOUBLE_EQ(scores[1].precision, 3.0 / 5);
  EXPECT_DOUBLE_EQ(scores[1].recall, 3.0 / 4);
  EXPECT_DOUBLE_EQ(scores[1].f1, 2 * 0.6 * 0.75 / (0.6 + 0.75));
  EXPECT_EQ(scores[2].precision, 0) << "nothing was taken for a bird";
  EXPECT_EQ(scores[2].recall, 0);
  EXPECT_EQ(scores[2].f1, 0);
  // The fish, which is neither there nor predicted, does not count.
  const ClassScores mean = mean_scores(scores);
  EXPECT_EQ(mean.samples, 11);
  EXPECT_EQ(mean.right, 7);
  EXPECT_DOUBLE_EQ(mean.precision, (4.0 / 6 + 3.0 / 5) / 3);
  EXPECT_DOUBLE_EQ(mean.recall, (4.0 / 6 + 3.0 / 4) / 3);

  const std::vector<Confusion> mistakes = most_frequent_mistakes(counts, 4, 2);
  ASSERT_EQ(mistakes.size(), 2u);
  EXPECT_EQ(mistakes[0].label, 0u);
  EXPECT_EQ(mistakes[0].predicted, 1u);
  EXPECT_EQ(mistakes[0].count, 2);
}

TEST(TargetScores, AreThoseOfAnExampleByHand) {
  // Two targets; the second is the same everywhere.
  const std::vector<float> targets = {1, 5, 2, 5, 3, 5}, predictions = {1, 6, 4, 5, 2, 3};
  const std::vector<TargetScores> scores = target_scores(predictions, targets, 2);
  EXPECT_DOUBLE_EQ(scores[0].mae, 1);
  EXPECT_DOUBLE_EQ(scores[0].rmse, std::sqrt(5.0 / 3));
  ASSERT_TRUE(scores[0].r2.has_value());
  EXPECT_DOUBLE_EQ(*scores[0].r2, 1 - 5.0 / 2);
  EXPECT_DOUBLE_EQ(scores[1].mae, 1);
  EXPECT_FALSE(scores[1].r2.has_value());
}

TEST(PartOf, IsTheTestSetIfThereIsOne) {
  Dataset data;
  data.train.count = 3;
  std::string part;
  EXPECT_EQ(part_of(data, part).count, 3u);
  EXPECT_EQ(part, "train");
  data.test.count = 2;
  part.clear();
  EXPECT_EQ(part_of(data, part).count, 2u);
  EXPECT_EQ(part, "test");
  part = "validation";
  EXPECT_THROW(part_of(data, part), ConfigError);
}

}  // namespace sweep::run_scores_test
