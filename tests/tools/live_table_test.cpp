// The live table of the built program on terminals of several widths, and what other processes see of the
// sweep.

#include <csignal>

#include "core/base/text.h"
#include "tests/support/program_folder.h"
#include "tests/support/program_on_screen.h"
#include "tests/support/quarters.h"

namespace sweep::testing::live_table_test {

class LiveTable : public ProgramFolder {
 protected:
  LiveTable() { write_quarters(folder_.path()); }

  // Takes longer than any test here. One that is only watched is to be quiet,
  // as nobody reads its terminal.
  std::vector<std::string> sweep_with(const std::vector<std::string>& more) const {
    return joined({"quarters.json", "lr=0.1,0.2", "batch_size=10", "num_workers=0", "epochs=1000000"}, more);
  }

  bool shows(const ProgramOnScreen& program, const std::string& text) const {
    return program.screen.text().find(text) != std::string::npos;
  }
  json status() const { return output({"status", "runs/quarters"}); }
  void wait_for_progress() const {
    for (int i = 0; i < 600 && !fs::exists(folder_.path() / "runs/quarters/.progress.json"); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }

  const std::string program_ = program_path(SWEEP_PROGRAM);
};

// One of the runs diverges, and three are skipped if there is no such device.
TEST_F(LiveTable, LeavesALinePerRunAndTheResultsAtEveryWidth) {
  const std::vector<std::string> words = {"quarters.json",
                                          "lr=0.1,0.2,1e30",
                                          "device=cpu,cuda:77",
                                          "num_workers=0",
                                          "batch_size=10",
                                          "epochs=500",
                                          "--jobs",
                                          "2"};
  for (const int width : {60, 80, 200}) {
    ProgramOnScreen program(program_, words, folder_.path(), width);
    ASSERT_TRUE(program.show_until([&] { return shows(program, "epoch") && shows(program, "/500"); }))
        << program.screen.text();
    EXPECT_TRUE(shows(program, "quarters")) << program.screen.text();
    EXPECT_EQ(program.finish(), 1);
    const std::string text = program.screen.text();
    EXPECT_THAT(text, HasSubstr("★ lr=0.")) << text;
    EXPECT_THAT(text, ::testing::ContainsRegex("(★|✓) lr=0.1,device=cpu")) << text;
    EXPECT_THAT(text, ::testing::ContainsRegex("(★|✓) lr=0.2,device=cpu")) << text;
    EXPECT_THAT(text, HasSubstr("✗ lr=1e+30")) << text;
    EXPECT_THAT(text, HasSubstr("3 runs skipped")) << text;
    EXPECT_EQ(text.find("0/6 runs"), std::string::npos) << "the table is erased at the end:\n" << text;
    EXPECT_TRUE(program.screen.unknown.empty()) << program.screen.unknown[0];
    EXPECT_EQ(program.screen.unfinished_updates, 0u);
    fs::remove_all(folder_.path() / "runs");
  }
}

TEST_F(LiveTable, LeavesNoRemainsWhenTheTerminalIsResized) {
  ProgramOnScreen program(program_, sweep_with({}), folder_.path(), 200);
  ASSERT_TRUE(program.show_until([&] { return shows(program, "img/s"); })) << program.screen.text();
  for (const int width : {80, 60, 200, 60}) {
    program.resize(width);
    const std::size_t before = program.sent.size();
    // What was on its way may still be for the old width.
    ASSERT_TRUE(program.show_until([&] {
      std::size_t redraws = 0;
      for (std::size_t at = before; (at = program.sent.find("\x1b[?2026l", at)) != std::string::npos; ++at)
        ++redraws;
      return redraws >= 3 && program.screen.unfinished_updates == 0;
    }));
    int headers = 0;
    for (const std::string& line : program.screen.lines()) {
      EXPECT_LT(display_width(line), width) << line;
      headers += line.find("0/2 runs") != std::string::npos;
    }
    EXPECT_EQ(headers, 1) << width << ":\n" << program.screen.text();
  }
  program.send_signal(SIGINT);
  EXPECT_EQ(program.finish(), 130);
}

TEST_F(LiveTable, IsSeenFromAnotherTerminalUntilTheSweepEnds) {
  ProgramOnScreen sweep(program_, sweep_with({"--quiet"}), folder_.path(), 80);
  wait_for_progress();
  ProgramOnScreen watch(program_, {"status", "--follow"}, folder_.path(), 100);
  ASSERT_TRUE(watch.show_until([&] { return shows(watch, "0/2 runs") && shows(watch, "/1000000"); }))
      << watch.screen.text();
  const json running = status();
  EXPECT_THAT(run({"status"}).out, AllOf(HasSubstr("quarters  running: "), HasSubstr("0/2 runs")))
      << "a list with the live tables of those in training";
  EXPECT_EQ(running["state"], "running");
  EXPECT_EQ(running["progress"]["running"][0]["epochs"], 1000000);
  const double seconds = running["progress"]["seconds"];
  EXPECT_TRUE(sweep.show_until([&] { return status()["progress"]["seconds"] >= seconds + 1; }));
  sweep.send_signal(SIGINT);
  EXPECT_EQ(sweep.finish(), 130);
  EXPECT_EQ(watch.finish(), 0);
  EXPECT_THAT(watch.screen.text(), HasSubstr("runs/quarters: interrupted: 1 pending, 1 interrupted"));
  EXPECT_THAT(watch.screen.text(), HasSubstr("sweep resume runs/quarters"));
  EXPECT_FALSE(fs::exists(folder_.path() / "runs/quarters/.progress.json"));
  run({"status", "--follow"}, 2);  // no sweep is running
}

TEST_F(LiveTable, TellsThatASweepWasKilled) {
  ProgramOnScreen sweep(program_, sweep_with({"--quiet"}), folder_.path(), 80);
  wait_for_progress();
  ProgramOnScreen watch(program_, {"status", "runs/quarters", "--follow"}, folder_.path(), 80);
  ASSERT_TRUE(watch.show_until([&] { return shows(watch, "0/2 runs"); })) << watch.screen.text();
  sweep.send_signal(SIGKILL);
  EXPECT_EQ(watch.finish(), 0);
  EXPECT_THAT(watch.screen.text(), HasSubstr("runs/quarters: died"));
  EXPECT_EQ(status()["state"], "died");
  run({"fsck", "runs/quarters"});
  // The next start removes what the killed one left.
  run(sweep_with({"--max-time", "1"}), 75);
  EXPECT_FALSE(fs::exists(folder_.path() / "runs/quarters/.progress.json"));
  EXPECT_EQ(status()["state"], "interrupted");
}

TEST_F(LiveTable, IsLinesOfJsonOrPlainOnesForWhoFollowsInAPipe) {
  ProgramOnScreen sweep(program_, sweep_with({"--quiet", "--max-time", "4"}), folder_.path(), 80);
  wait_for_progress();
  Finished plain;
  std::thread reader([&] {
    plain = run_program(program_, {"status", "--follow", "quarters"}, folder_.path() / "runs");
  });
  const Finished events_out = run({"status", "runs/quarters", "--follow", "--json"});
  reader.join();
  EXPECT_EQ(sweep.finish(), 75);
  std::vector<std::string> events;
  for (const std::string_view line : lines_of(events_out.out)) events.push_back(json::parse(line)["event"]);
  ASSERT_GE(events.size(), 2u);
  EXPECT_EQ(events.front(), "progress");
  EXPECT_EQ(events.back(), "end");
  EXPECT_EQ(plain.code, 0) << plain.err;
  EXPECT_THAT(plain.out, Not(HasSubstr("\x1b")));
  EXPECT_THAT(plain.out, HasSubstr("[1/2] lr=0.1  epoch "));
}

TEST_F(LiveTable, OfAnEndedSweepIsItsRunsByState) {
  run({"quarters.json", "lr=0.1,0.2", "num_workers=0", "batch_size=10", "--quiet"});
  EXPECT_EQ(run({"status", "runs/quarters", "--follow"}).out, "runs/quarters: ended: 2 completed\n");
  EXPECT_EQ(status()["statuses"]["completed"], 2);
  EXPECT_THAT(run({"status", "runs/quarters", "--format", "csv"}).out,
              AllOf(StartsWith("sweep,runs,last end,best run,accuracy\nruns/quarters,2 completed,"),
                    Not(HasSubstr("%"))));
  EXPECT_THAT(run({"status"}).out, HasSubstr("quarters  2 completed"));
  run({"status", "runs", "--expect-done"}, 2);  // That is for one sweep.
  run({"status", "nothing"}, 2);
}

}  // namespace sweep::testing::live_table_test
