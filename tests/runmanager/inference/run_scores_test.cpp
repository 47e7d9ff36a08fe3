// Precision, recall, F1 and errors, computed by hand.
#include "runmanager/inference/predictor.h"

#include "tests/support/test.h"

namespace sweep::run_scores_test {

using ::testing::_, ::testing::DoubleEq, ::testing::FieldsAre;

TEST(ClassScores, AreThoseOfAnExampleByHand) {
  // 4 of 6 cats and 3 of 4 dogs are right; the bird is taken for a cat; there is no fish.
  const std::vector<std::int64_t> counts = {4, 2, 0, 0,  //
                                            1, 3, 0, 0,  //
                                            1, 0, 0, 0,  //
                                            0, 0, 0, 0};
  const std::vector<ClassScores> scores = class_scores(counts, 4);
  constexpr double kCats = 4.0 / 6, kDogs = 3.0 / 5;
  const auto are = [](int samples, int predicted, int right, double precision, double recall, double f1) {
    return FieldsAre(samples, predicted, right, DoubleEq(precision), DoubleEq(recall), DoubleEq(f1));
  };
  EXPECT_THAT(scores, ElementsAre(are(6, 6, 4, kCats, kCats, kCats),
                                  are(4, 5, 3, kDogs, 3.0 / 4, 2 * kDogs * 0.75 / (kDogs + 0.75)),
                                  are(1, 0, 0, 0, 0, 0), are(0, 0, 0, 0, 0, 0)));
  // The fish, which is neither there nor predicted, does not count.
  EXPECT_THAT(mean_scores(scores),
              FieldsAre(11, 11, 7, DoubleEq((kCats + kDogs) / 3), DoubleEq((kCats + 3.0 / 4) / 3), _));
  EXPECT_THAT(most_frequent_mistakes(counts, 4, 2), ElementsAre(FieldsAre(0u, 1u, 2), FieldsAre(1u, 0u, 1)));
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
