#include "tbwriter/pr_curve.h"

#include <gtest/gtest.h>

#include "tbwriter/error.h"

namespace sweep::tbwriter {
namespace {

// torch.utils.tensorboard.summary.compute_curve(labels=[0, 1, 1, 0, 1], predictions=[0, 1, .6, .7, .2],
// num_thresholds=5)
TEST(MakePrCurve, MatchesPyTorch) {
  const std::vector<std::uint8_t> labels{0, 1, 1, 0, 1};
  const std::vector<float> scores{0.0f, 1.0f, 0.6f, 0.7f, 0.2f};
  const std::vector<float> expected{3,    2,        2,        1,        1,          // true positives
                                    2,    1,        1,        0,        0,          // false positives
                                    0,    1,        1,        2,        2,          // true negatives
                                    0,    1,        1,        2,        2,          // false negatives
                                    0.6f, 2 / 3.0f, 2 / 3.0f, 1,        1,          // precision
                                    1,    2 / 3.0f, 2 / 3.0f, 1 / 3.0f, 1 / 3.0f};  // recall
  EXPECT_EQ(make_pr_curve(labels, scores, {}, 5), expected);
}

TEST(MakePrCurve, WeighsSamples) {
  const std::vector<std::uint8_t> labels{1, 0};
  const std::vector<float> scores{1, 1}, weights{3, 1};
  const std::vector<float> curve = make_pr_curve(labels, scores, weights, 2);
  EXPECT_EQ(curve, (std::vector<float>{3, 3, 1, 1, 0, 0, 0, 0, 0.75f, 0.75f, 1, 1}));
}

TEST(MakePrCurve, OfNothingIsZero) { EXPECT_EQ(make_pr_curve({}, {}, {}, 2), std::vector<float>(12, 0.0f)); }

TEST(MakePrCurve, RefusesWhatIsNoProbabilityOrLabel) {
  const std::vector<std::uint8_t> labels{0, 1}, wrong{0, 2};
  const std::vector<float> scores{0, 1}, outside{0, 1.5f}, nan{0, std::numeric_limits<float>::quiet_NaN()},
      one{0};
  EXPECT_THROW(make_pr_curve(wrong, scores, {}, 5), UsageError);
  EXPECT_THROW(make_pr_curve(labels, outside, {}, 5), UsageError);
  EXPECT_THROW(make_pr_curve(labels, nan, {}, 5), UsageError);
  EXPECT_THROW(make_pr_curve(labels, one, {}, 5), UsageError);
  EXPECT_THROW(make_pr_curve(labels, scores, one, 5), UsageError);
  EXPECT_THROW(make_pr_curve(labels, scores, {}, 1), UsageError);
  EXPECT_THROW(make_pr_curve(labels, scores, {}, 128), UsageError);
}

}  // namespace
}  // namespace sweep::tbwriter
