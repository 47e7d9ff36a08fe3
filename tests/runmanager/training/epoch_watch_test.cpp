#include "runmanager/training/epoch_watch.h"

#include "runmanager/config/metrics.h"
#include "runmanager/tensorboard/run_log.h"
#include "tests/support/test.h"

namespace sweep::epoch_watch_test {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct Ended {
  int best, epoch;  // 0: none; not ended
  bool operator==(const Ended&) const = default;
};

// Shows the losses of epochs 1, 2, … to a watch until it ends the run.
Ended watch(const StopSpec& stop, const std::vector<double>& losses) {
  EpochWatch watch(stop);
  int number = 0, best = 0;
  for (const double loss : losses) {
    const bool might = watch.may_end();
    const bool better = watch.add({++number, {{"validation_loss", loss}}});
    EXPECT_EQ(watch.has_ended(), might && !better);
    if (better) best = number;
    if (watch.has_ended()) return {best, number};
  }
  return {best, 0};
}

// Expected values by hand, from the rule of Keras and Lightning: an epoch counts as better if it is so by
// more than min_delta; after `patience` in a row that do not, the run ends.
TEST(EpochWatch, EndsAfterPatienceEpochsWithoutImprovement) {
  const StopSpec one{.patience = 1}, two{.patience = 2};
  EXPECT_EQ(watch(two, {5, 4, 3, 2, 1}), (Ended{5, 0}));
  EXPECT_EQ(watch(one, {5, 5}), (Ended{1, 2})) << "a tie is no improvement";
  EXPECT_EQ(watch(two, {5, 6, 4, 5, 4, 3}), (Ended{3, 5})) << "the 6 does not count any more";
  EXPECT_EQ(watch(two, {3, 4}), (Ended{1, 0}));
  EXPECT_EQ(watch({.goal = asked_goal("Loss/validation", true), .patience = 2}, {1, 3, 2, 2.5, 9}),
            (Ended{2, 4}));
  EXPECT_EQ(watch({.patience = 2, .min_delta = 0.5}, {5, 4.6, 4.5, 1}), (Ended{1, 3})) << "exactly min_delta";
  EXPECT_EQ(watch({.patience = 2, .min_delta = 0.5}, {5, 4.6, 4.4, 4}), (Ended{3, 0}));
  EXPECT_EQ(watch({.patience = 2, .min_delta = 1e300}, {5, -5, 1}), (Ended{1, 3}));
  EXPECT_EQ(watch(two, {kNan, 4, kNan, kNan}), (Ended{2, 4}));
  EXPECT_EQ(watch(two, {kNan, kNan}), (Ended{0, 2}));
  EXPECT_EQ(watch({.patience = 0}, {1, 2, 3, 4, 5, 6}), (Ended{1, 0})) << "only looks for the best";
}

// A program may validate after some of its reports only.
TEST(EpochWatch, DoesNotCountEpochsWithoutTheMetric) {
  EpochWatch watch({.patience = 2});
  for (int epoch = 1; epoch <= 20; ++epoch) {
    EpochRecord record(epoch, {{"loss", 1}});
    if (epoch % 5 == 0) record.set("validation_loss", 1);
    EXPECT_EQ(watch.add(record), epoch == 5) << epoch;
    EXPECT_EQ(watch.has_ended(), epoch >= 15) << epoch;
  }
}

TEST(EpochWatch, SaysWhyARunEnded) {
  EpochWatch watch({.patience = 1, .min_delta = 0.25});
  watch.add({1, {{"validation_loss", 2}}});
  watch.add({2, {{"validation_loss", 1.9}}});
  EXPECT_EQ(watch.reason(),
            "Loss/validation has not improved by more than 0.25 for 1 epoch; it was best in epoch "
            "1: 2.0000");
  EpochWatch never({.goal = asked_goal("R2/validation", true), .patience = 1});
  never.add({1, {{"validation_r2", kNan}}});
  EXPECT_EQ(never.reason(), "R2/validation has not improved for 1 epoch");
}

TEST(WatchableMetrics, AreTheTagsOfAnEpochsPoints) {
  EpochRecord epoch(1);
  for (const Metric& metric : metrics()) {
    if (metric.part == MetricPart::kTraining || metric.part == MetricPart::kValidation)
      epoch.set(metric.key, 1);
  }
  std::vector<std::string> tags;
  for (const auto& point : epoch_points(epoch)) {
    const bool is_time = point.tag.starts_with("Time/") || point.tag.starts_with("Duration/");
    if (!is_time) tags.emplace_back(point.tag);
  }
  std::vector<std::string> known = watchable_tags();
  std::ranges::sort(tags);
  std::ranges::sort(known);
  EXPECT_EQ(tags, known);
}

}  // namespace sweep::epoch_watch_test
