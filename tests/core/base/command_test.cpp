#include "core/base/command.h"

#include "tests/support/test.h"

namespace sweep::command_test {

constexpr auto kAlways = [] { return true; };

CommandResult shell(const std::string& script, const std::function<bool()>& goes_on = kAlways) {
  return run_command({"sh", "-c", script}, goes_on);
}

TEST(RunCommand, TakesWhatTheProgramSaysAndHowItEnds) {
  const CommandResult result = shell("cat; echo one; echo two >&2; exit 3");
  EXPECT_TRUE(result.started);
  EXPECT_FALSE(result.ended);
  EXPECT_EQ(result.code, 3);
  EXPECT_EQ(result.out, "one\n");
  EXPECT_EQ(result.err, "two\n");
  EXPECT_EQ(shell("kill -TERM $$").code, 128 + 15);
}

TEST(RunCommand, ReadsMoreThanAPipeHolds) {
  EXPECT_EQ(shell("head -c 1000000 /dev/zero; head -c 1000000 /dev/zero >&2").out.size(), 1'000'000u);
}

TEST(RunCommand, SaysThatThereIsNoSuchProgram) {
  EXPECT_FALSE(run_command({"no-such-program"}, kAlways).started);
  EXPECT_FALSE(run_command({"/dev/null"}, kAlways).started);
}

TEST(RunCommand, KillsWhatMayNotGoOnWithAllThatItStarted) {
  const auto start = std::chrono::steady_clock::now();
  int calls = 0;
  const CommandResult result =
      shell("sleep 60 & trap '' TERM; echo begun; sleep 60", [&] { return ++calls < 5; });
  EXPECT_TRUE(result.ended);
  EXPECT_EQ(result.code, 128 + 9);
  EXPECT_EQ(result.out, "begun\n");
  EXPECT_THROW(shell("sleep 60", []() -> bool { throw std::runtime_error("no"); }), std::runtime_error);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

TEST(RunCommand, AsksAlsoOnceTheProgramHasClosedItsOutput) {
  int calls = 0;
  EXPECT_TRUE(shell("exec >&- 2>&-; sleep 60", [&] { return ++calls < 20; }).ended);
}

}  // namespace sweep::command_test
