#include "runmanager/terminal/terminal_progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/run_world.h"

namespace sweep {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

// A terminal that interprets the escape sequences of Progress: line breaks, \r, "up n", "clear to the end".
class Screen {
 public:
  Terminal terminal(int width, bool color = true) {
    return {.interactive = true,
            .color = color,
            .unicode = true,
            .width = [width] { return width; },
            .write = [this](std::string_view text) { write(text); }};
  }

  std::vector<std::string> lines;  // as they stand
  std::size_t writes = 0;

 private:
  void write(std::string_view text) {
    ++writes;
    if (lines.empty()) lines.emplace_back();
    while (!text.empty()) {
      if (text.starts_with("\x1b[")) {
        const std::size_t end = text.find_first_of("ABCDEFGHJKmhl");
        const char command = text[end];
        if (command == 'A') row_ -= static_cast<std::size_t>(std::stoi(std::string(text.substr(2, end - 2))));
        if (command == 'K') lines[row_].resize(column_);
        if (command == 'J') {
          lines[row_].resize(column_);
          lines.resize(row_ + 1);
        }
        EXPECT_THAT("AKJm", HasSubstr(std::string(1, command)));
        text.remove_prefix(end + 1);
        continue;
      }
      if (text[0] == '\r') {
        column_ = 0;
      } else if (text[0] == '\n') {
        ++row_;
        column_ = 0;
        if (row_ == lines.size()) lines.emplace_back();
      } else {
        if (lines[row_].size() <= column_) lines[row_].resize(column_ + 1, ' ');
        lines[row_][column_++] = text[0];
      }
      text.remove_prefix(1);
    }
  }

  std::size_t row_ = 0, column_ = 0;
};

struct Clock {
  double seconds = 10;
  std::function<double()> function() {
    return [this] { return seconds; };
  }
};

TEST(Progress, ShowsRunEpochSpeedsLossAccuracyAndTimesLeft) {
  Screen screen;
  Clock clock;
  TerminalProgress progress(screen.terminal(120), clock.function(), false, "fashion", 4, 4 * 2 * 1000.0);
  progress.run(1).begin_run({.number = 1, .name = "lr=0.1", .epochs = 2, .batches = 10, .samples = 1000});
  progress.run(1).begin_epoch(1);
  for (int i = 0; i < 5; ++i) {
    clock.seconds += 1;
    progress.run(1).batch({.loss = 50, .correct = 80, .samples = 100});
  }
  ASSERT_EQ(screen.lines.size(), 3u);
  EXPECT_EQ(screen.lines[0], "lr=0.1");
  // 5 of the epoch's 10 batches, and of the run's 20, took 5 s.
  for (const char* part :
       {"epoch 1/2", " 50%", "loss 0.5000", "acc 80.00%", "15 s left", "1.00 it/s", "100 img/s"}) {
    EXPECT_THAT(screen.lines[1], HasSubstr(part));
  }
  // 500 of 8000 samples took 5 s.
  for (const char* part : {"run 1/4", "  6%", "1 m 15 s left", "5 s so far", "fashion"}) {
    EXPECT_THAT(screen.lines[2], HasSubstr(part));
  }
}

// Epochs of a tenth of a second, of which half is validation: each alone would have another speed.
TEST(Progress, SpeedsAreThoseOfASecondOfTrainingAtLeast) {
  Screen screen;
  Clock clock;
  TerminalProgress progress(screen.terminal(120), clock.function(), false, "fashion", 1, 1e6);
  progress.run(1).begin_run({.number = 1, .name = "a", .epochs = 100, .batches = 1, .samples = 10});
  const auto epoch = [&](int number, double seconds) {
    progress.run(1).begin_epoch(number);
    clock.seconds += seconds;
    progress.run(1).batch({.loss = 1, .correct = 1, .samples = 10}, 1);
    progress.run(1).phase("validation");
    clock.seconds += 0.05;
  };
  for (int number = 1; number <= 19; ++number) epoch(number, 0.05);
  EXPECT_THAT(screen.lines[1], Not(HasSubstr("img/s"))) << "only 0.95 s of training";
  epoch(20, 0.0501);
  progress.run(1).begin_epoch(21);
  clock.seconds += 0.2;
  progress.run(1).batch({.loss = 1, .correct = 1, .samples = 10}, 1);
  EXPECT_THAT(screen.lines[1], HasSubstr("20.0 it/s  200 img/s"))
      << "the slow batch belongs to the next second";
}

TEST(Progress, NeverDrawsALineWiderThanTheTerminal) {
  for (int width = 20; width < 160; width += 7) {
    Screen screen;
    Clock clock;
    TerminalProgress progress(screen.terminal(width), clock.function(), false, "fashion", 400, 1e9);
    progress.run(1).begin_run(
        {.number = 1, .name = std::string(100, 'n'), .epochs = 100, .batches = 1000, .samples = 100000});
    progress.run(1).begin_epoch(42);
    clock.seconds += 100;
    progress.run(1).batch({.loss = 5e6, .correct = 80, .samples = 100});
    for (const std::string& line : screen.lines) EXPECT_LT(display_width(line), width) << line;
  }
}

TEST(Progress, LeavesFinishedRunsAboveTheBarsAndErasesTheBars) {
  Screen screen;
  Clock clock;
  {
    TerminalProgress progress(screen.terminal(100), clock.function(), false, "s", 2, 10);
    progress.run(1).begin_run({.number = 1, .name = "a", .epochs = 1, .batches = 1, .samples = 10});
    progress.run(1).begin_epoch(1);
    progress.run(1).batch({.loss = 1, .correct = 1, .samples = 10});
    RunRecord failed;
    failed.name = "a";
    failed.status = RunStatus::kFailed;
    failed.error = "broken";
    progress.end_run(1, failed);
    progress.run(2).begin_run({.number = 2, .name = "b", .epochs = 1, .batches = 1, .samples = 10});
    ASSERT_EQ(screen.lines.size(), 4u);
    EXPECT_THAT(screen.lines[0], HasSubstr("a  failed: broken"));
    EXPECT_EQ(screen.lines[1], "b");
    EXPECT_THAT(screen.lines[3], HasSubstr("1 failed"));
  }
  ASSERT_EQ(screen.lines.size(), 2u);
  EXPECT_EQ(screen.lines[1], "");
}

TEST(Progress, RedrawsAtMostFifteenTimesASecond) {
  Screen screen;
  Clock clock;
  TerminalProgress progress(screen.terminal(100), clock.function(), false, "s", 1, 1e6);
  progress.run(1).begin_run({.number = 1, .name = "a", .epochs = 1, .batches = 100000, .samples = 1000000});
  progress.run(1).begin_epoch(1);
  for (int i = 0; i < 10000; ++i) {
    clock.seconds += 0.0002;
    progress.run(1).batch({.loss = 1, .correct = 1, .samples = 10});
  }
  EXPECT_GE(screen.writes, 20u);
  EXPECT_LE(screen.writes, 32u);
}

TEST(Progress, SendsNoColoursUnlessWanted) {
  std::string sent;
  Clock clock;
  Terminal terminal{.interactive = true,
                    .color = false,
                    .unicode = false,
                    .width = [] { return 80; },
                    .write = [&sent](std::string_view text) { sent += text; }};
  {
    TerminalProgress progress(terminal, clock.function(), false, "s", 1, 10);
    progress.run(1).begin_run({.number = 1, .name = "a", .epochs = 1, .batches = 1, .samples = 10});
    progress.run(1).batch({.loss = 1, .correct = 1, .samples = 10});
  }
  for (std::size_t i = sent.find("\x1b["); i != std::string::npos; i = sent.find("\x1b[", i + 1)) {
    EXPECT_NE(sent[sent.find_first_not_of("0123456789;", i + 2)], 'm');
  }
  EXPECT_TRUE(
      std::all_of(sent.begin(), sent.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; }));
}

}  // namespace
}  // namespace sweep
