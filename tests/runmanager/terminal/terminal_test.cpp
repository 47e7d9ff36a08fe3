#include "runmanager/terminal/terminal.h"

#include <pty.h>
#include <unistd.h>
#include <csignal>

#include "runmanager/config/metrics.h"
#include "runmanager/training/stop_signals.h"
#include "tests/support/screen.h"

namespace sweep::terminal_test {

TEST(DisplayWidth, CountsColumnsAndNotBytes) {
  EXPECT_EQ(display_width("abc"), 3);
  EXPECT_EQ(display_width("é"), 1);
  EXPECT_EQ(display_width("e\u0301"), 1);  // combining acute
  EXPECT_EQ(display_width("日本"), 4);
  EXPECT_EQ(display_width("━╸"), 2);
  EXPECT_EQ(display_width("\x1b[31mred\x1b[0m"), 3);
  EXPECT_EQ(display_width("\xff\xfe"), 2);  // no UTF-8: one each
  EXPECT_EQ(display_width("\xe6\x97"), 2);  // cut in the middle
}

TEST(FitWidth, NeverGivesMoreColumnsThanAsked) {
  const std::string text = "\x1b[1mlr=0.1\x1b[0m 日本 naïve ━━";
  for (int columns = 0; columns < 30; ++columns) {
    EXPECT_LE(display_width(fit_width(text, columns)), columns);
    EXPECT_LE(display_width(fit_width(text, columns, false)), columns);
  }
  EXPECT_EQ(fit_width("abcdef", 4), "abc…");
  EXPECT_EQ(fit_width("abcdef", 4, false), "abc~");
  EXPECT_EQ(fit_width("abcd", 4), "abcd");
}

TEST(FitWidth, KeepsTheSequenceThatSwitchesColoursOff) {
  EXPECT_EQ(fit_width("\x1b[31mabcdef\x1b[0m", 3), "\x1b[31mab…\x1b[0m");
}

TEST(Wrapped, BreaksLinesAtBlanksBelowTheirSecondColumn) {
  const std::string help =
      "Usage: sweep\n"
      "  --jobs N   runs at once; auto: one per core\n"
      "             more of it, which is also long\n"
      "plain words without columns\n";
  EXPECT_EQ(wrapped(help, 0), help);
  EXPECT_EQ(wrapped(help, 80), help);
  EXPECT_EQ(wrapped(help, 26),
            "Usage: sweep\n"
            "  --jobs N   runs at once;\n"
            "             auto: one per\n"
            "             core\n"
            "             more of it,\n"
            "             which is also\n"
            "             long\n"
            "plain words without\n"
            "columns\n");
  EXPECT_EQ(wrapped("/a/long/path of words", 5), "/a/long/path of words") << "no blank where it could break";
  for (int columns = 1; columns < 40; ++columns) {
    std::string words = wrapped(help, columns), expected = help;
    for (std::string* text : {&words, &expected})
      std::erase_if(*text, [](char c) { return c == ' ' || c == '\n'; });
    EXPECT_EQ(words, expected);
  }
}

TEST(HumanSeconds, ChooseTheUnit) {
  const std::pair<double, const char*> cases[] = {
      {0, "0 ms"},         {0.000002, "0.002 ms"}, {0.00004, "0.04 ms"}, {0.0004, "0.4 ms"},
      {0.0012, "1.2 ms"},  {0.35, "350 ms"},       {1.234, "1.23 s"},    {12.34, "12.3 s"},
      {59.96, "1 m 00 s"}, {125, "2 m 05 s"},      {12005, "3 h 20 m"}};
  for (const auto& [seconds, text] : cases) EXPECT_EQ(human_seconds(seconds), text);
}

TEST(HumanCount, ChoosesTheUnit) {
  const std::pair<double, const char*> cases[] = {
      {0.5, "0.50"}, {950, "950"}, {999.7, "1.00k"}, {12345, "12.3k"}, {1.25e6, "1.25M"}};
  for (const auto& [count, text] : cases) EXPECT_EQ(human_count(count), text);
}

// Death tests: the process's environment and its signals are changed in a child.
TEST(TerminalDeathTest, HonoursTermAndNoColor) {
  EXPECT_EXIT(
      {
        ::setenv("TERM", "dumb", 1);
        const Terminal terminal = Terminal::of_process();
        std::exit(terminal.interactive || terminal.color ? 1 : 0);
      },
      ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(
      {
        ::setenv("NO_COLOR", "1", 1);
        std::exit(Terminal::of_process().color || stdout_color() ? 1 : 0);
      },
      ::testing::ExitedWithCode(0), "");
}

// Ends this process with the width of a terminal that says it has so many columns.
[[noreturn]] void exit_with_width(unsigned short columns, bool by_mpirun) {
  int own = -1, output = -1;
  winsize size{};
  size.ws_col = columns;
  if (::openpty(&own, &output, nullptr, nullptr, &size) != 0) std::exit(1);
  ::dup2(output, STDOUT_FILENO);
  ::unsetenv("COLUMNS");
  if (by_mpirun) ::setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
  std::exit(stdout_width());
}

// mpirun gives rank 0 a terminal in any case, with the size of its own if it has one.
TEST(TerminalDeathTest, ATerminalThatMpirunMadeForAFileIsNone) {
  EXPECT_EXIT(exit_with_width(0, true), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(exit_with_width(70, true), ::testing::ExitedWithCode(70), "");
  EXPECT_EXIT(exit_with_width(0, false), ::testing::ExitedWithCode(80), "");
}

TEST(StopSignals, NoteTheFirstSignalUntilTheOuterObjectEnds) {
  {
    const StopSignals outer;
    EXPECT_EQ(StopSignals::requested(), 0);
    ::raise(SIGTERM);
    {
      const StopSignals inner;
      EXPECT_EQ(StopSignals::requested(), SIGTERM) << "it came while the sweep was read";
    }
    EXPECT_EQ(StopSignals::requested(), SIGTERM);
  }
  const StopSignals signals;
  EXPECT_EQ(StopSignals::requested(), 0) << "they start anew";
}

TEST(StopSignalsDeathTest, LeaveAtOnceAtTheSecondSignal) {
  const auto twice = [](int signal) {
    const StopSignals signals;
    ::raise(signal);
    ::raise(signal);
    std::exit(0);
  };
  EXPECT_EXIT(twice(SIGINT), ::testing::ExitedWithCode(130), "");
  EXPECT_EXIT(twice(SIGTERM), ::testing::ExitedWithCode(143), "");
}

using testing::Screen;

TEST(LiveRegion, StaysBelowWhatIsWritten) {
  Screen screen(40);
  {
    LiveRegion region(screen.terminal());
    region.draw({"a", "b"});
    region.draw({"c", "d", "e"});
    EXPECT_THAT(screen.lines(), ElementsAre("c", "d", "e"));
    region.write_above("first\n");
    region.draw({"f"});
    EXPECT_THAT(screen.lines(), ElementsAre("first", "f"));
    region.draw({"g", "h"}, "second\nthird\n");
    EXPECT_THAT(screen.lines(), ElementsAre("first", "second", "third", "g", "h"));
    region.draw({"shorter"});
    EXPECT_THAT(screen.lines(), ElementsAre("first", "second", "third", "shorter"));
  }
  EXPECT_THAT(screen.lines(), ElementsAre("first", "second", "third"));
  EXPECT_TRUE(screen.unknown.empty());
  EXPECT_EQ(screen.unfinished_updates, 0u);
}

TEST(LiveRegion, IsDrawnByOneWrite) {
  Screen screen(40);
  LiveRegion region(screen.terminal());
  region.draw({"a", "b"});
  region.draw({"a", "b"});
  EXPECT_EQ(screen.writes, 1u) << "nothing has changed";
  region.draw({"c"}, "above\n");
  EXPECT_EQ(screen.writes, 2u);
}

TEST(LiveRegion, LeavesNothingBehindWhenTheTerminalChangesItsWidth) {
  for (const int before : {200, 80, 60}) {
    for (const int after : {200, 80, 60, 33, 20}) {
      Screen screen(before, 50);
      LiveRegion region(screen.terminal());
      region.draw({std::string(190, 'a'), "b", std::string(190, 'c')}, "stays\n");
      screen.resize(after, 50);
      region.draw({"d", std::string(190, 'e')});
      EXPECT_THAT(screen.lines(),
                  ElementsAre("stays", "d",
                              std::string(std::min(190, after - 2), 'e') + (after - 1 < 190 ? "…" : "")))
          << before << " to " << after;
    }
  }
}

// Such terminals cut what was there, so that going up further would erase what has to stay.
TEST(LiveRegion, ErasesNothingElseOnATerminalThatDoesNotWrapAnew) {
  std::string sent;
  int width = 80;
  Terminal terminal{.interactive = true, .reflows = false, .width = [&] { return width; }};
  terminal.write = [&](std::string_view text) { sent = text; };
  LiveRegion region(terminal);
  region.draw({std::string(70, 'a'), "b"});
  width = 20;
  region.draw({"c", "d"});
  EXPECT_NE(sent.find("\x1b[1A"), std::string::npos) << sent;
}

}  // namespace sweep::terminal_test
