// The learning-rate range test, on a network whose losses are computed by hand or by a real engine.
#include "runmanager/plan/lr_find.h"

#include "runmanager/terminal/terminal.h"
#include "tbwriter/event_files.h"
#include "tests/support/run_world.h"
#include "tests/support/test.h"

namespace sweep::lr_find_test {

class LrFind : public ::testing::Test {
 protected:
  LrFind() {
    run_.config = &config_;
    run_.data = std::make_shared<const Dataset>(small_dataset());
    run_.network = std::make_shared<const Network>(config_.network, run_.data->shape);
  }

  RunConfig config_ = small_run(0, 0.5);
  PreparedRun run_;
};

TEST_F(LrFind, RaisesTheLearningRateByTheSameFactorFromBatchToBatch) {
  const LrCurve curve = find_lr(run_, {.from = 1e-6, .to = 1e-2, .steps = 41, .threads = 1});
  ASSERT_EQ(curve.points.size(), 41u) << "ten epochs of four batches, and one more";
  EXPECT_DOUBLE_EQ(curve.points.front().lr, 1e-6);
  EXPECT_NEAR(curve.points.back().lr, 1e-2, 1e-12);
  for (std::size_t i = 1; i < curve.points.size(); ++i)
    EXPECT_NEAR(curve.points[i].lr / curve.points[i - 1].lr, std::pow(10.0, 0.1), 1e-9);
}

TEST_F(LrFind, GivesTheSameBitsOnAnyNumberOfThreads) {
  const LrCurve one = find_lr(run_, {.from = 1e-4, .to = 1, .steps = 30, .threads = 1});
  const LrCurve three = find_lr(run_, {.from = 1e-4, .to = 1, .steps = 30, .threads = 3});
  EXPECT_EQ(lr_curve_table(one).rows, lr_curve_table(three).rows);
}

TEST_F(LrFind, StopsWhereTheLossDiverges) {
  const LrCurve curve = find_lr(run_, {.from = 1e-3, .to = 1e6, .steps = 200, .threads = 1});
  EXPECT_TRUE(curve.diverged);
  EXPECT_LT(curve.points.size(), 200u);
  EXPECT_THAT(lr_curve_text(curve, 80, true), HasSubstr("The loss diverged at lr "));
}

TEST_F(LrFind, SuggestsNothingWhereTheLossDoesNotFall) {
  const LrCurve curve = find_lr(run_, {.from = 1e-12, .to = 1e-11, .steps = 20, .threads = 1});
  EXPECT_FALSE(curve.steepest);
  EXPECT_FALSE(curve.minimum_tenth);
  EXPECT_THAT(lr_curve_text(curve, 80, true), HasSubstr("no learning rate is suggested"));
  EXPECT_TRUE(lr_curve_json(curve)["steepest"].is_null());
}

TEST_F(LrFind, WidensARangeThatBeginsTooHigh) {
  Dataset data = small_dataset();
  auto set = std::make_shared<TensorDataset>(*data.train.set);
  std::vector<std::uint8_t> pixels;
  for (std::size_t i = 0; i < set->size() * 16; ++i) {  // learnable, except for a few samples
    const std::size_t label = static_cast<std::size_t>(set->labels()[i / 16]) + (i / 16 % 7 == 0 ? 1 : 0);
    pixels.push_back(i % 16 % 3 == label % 3 ? 200 : 0);
  }
  set->samples = std::move(pixels);
  data.train.set = set;
  run_.data = std::make_shared<const Dataset>(data);
  const LrCurve curve = find_lr(run_, {.from = 100, .to = 1e6, .steps = 60, .threads = 1});
  EXPECT_TRUE(curve.is_widened);
  EXPECT_LE(curve.points.front().lr, 0.1);
  EXPECT_TRUE(curve.minimum_tenth);
  EXPECT_THAT(lr_curve_text(curve, 80, true), HasSubstr("begins lower than was asked for"));
  EXPECT_FALSE(find_lr(run_, {.from = 1e-5, .to = 10, .steps = 60, .threads = 1}).is_widened);
}

TEST_F(LrFind, RefusesRangesThatAreNone) {
  EXPECT_THROW(find_lr(run_, {.from = 0, .to = 1}), ConfigError);
  EXPECT_THROW(find_lr(run_, {.from = 1, .to = 1}), ConfigError);
  EXPECT_THROW(find_lr(run_, {.from = 1, .to = std::nan("")}), ConfigError);
  EXPECT_THROW(find_lr(run_, {.from = 1e-3, .to = 1, .steps = 2}), ConfigError);
}

TEST_F(LrFind, ThePlotFitsTheWidth) {
  const LrCurve curve = find_lr(run_, {.from = 1e-5, .to = 10, .steps = 60, .threads = 1});
  for (const bool unicode : {true, false}) {
    for (const int width : {60, 80, 200}) {
      const std::string text = lr_curve_text(curve, width, unicode);
      for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = text.find('\n', begin);
        EXPECT_LE(display_width(text.substr(begin, end - begin)), width);
        begin = end + 1;
      }
      if (!unicode) {
        EXPECT_TRUE(std::all_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x80; }));
      }
    }
  }
}

TEST_F(LrFind, EventsReplaceThoseOfAnEarlierTest) {
  const test::TemporaryDirectory directory;
  const LrCurve curve = find_lr(run_, {.from = 1e-5, .to = 1, .steps = 20, .threads = 1});
  write_lr_events(curve, directory.path() / "s.lr-find");
  write_lr_events(curve, directory.path() / "s.lr-find");
  EXPECT_EQ(tbwriter::list_event_files(directory.path() / "s.lr-find").size(), 1u);
}

}  // namespace sweep::lr_find_test
