#include "core/base/child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>

#include "tests/support/test.h"

namespace sweep::child_test {

using Kind = ProcessEnd::Kind;

constexpr std::chrono::seconds kLong(20);
constexpr std::array kGroups = {ChildGroup::kParents, ChildGroup::kOwn, ChildGroup::kKept};

ChildStart shell_start(const std::string& script, ChildGroup group = ChildGroup::kKept) {
  return {.words = {"sh", "-c", script}, .group = group};
}

std::pair<Kind, int> end_of(const ChildStart& start) {
  Child child(start);
  const std::optional<ProcessEnd> end = child.wait_for_end(kLong);
  return end ? std::pair(end->kind, end->value) : std::pair(Kind::kExit, -1);
}

// What it writes until it ends.
std::string output_of(const ChildStart& start) {
  Child child(start);
  std::string text;
  for (bool has_ended = false; !has_ended;) {
    child.wait(kLong);
    has_ended = child.end().has_value();
    child.read(
        [&](std::string_view part, bool is_error) { text += (is_error ? "E:" : "") + std::string(part); });
  }
  return text;
}

// A zombie is not: another process may be late to wait for it.
bool is_alive(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  return std::getline(file, text) && text.find(") Z") == std::string::npos;
}

bool goes_away(pid_t pid) {
  for (int tries = 0; tries < 500 && is_alive(pid); ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return !is_alive(pid);
}

pid_t number_in(const std::filesystem::path& file) {
  for (int tries = 0; tries < 2000; ++tries) {
    int number = 0;
    if (std::ifstream(file) >> number) return number;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return 0;
}

TEST(Child, EndsAsTheProgramDoes) {
  for (const ChildGroup group : kGroups) {
    EXPECT_EQ(end_of(shell_start("exit 3", group)), std::pair(Kind::kExit, 3));
    for (const int signal : {SIGKILL, SIGSEGV, SIGTERM, SIGINT})
      EXPECT_EQ(end_of(shell_start("ulimit -c 0; kill -" + std::to_string(signal) + " $$", group)),
                std::pair(Kind::kSignal, signal));
    EXPECT_EQ(end_of({.words = {"no-such-program"}, .group = group}), std::pair(Kind::kNotStarted, ENOENT));
    EXPECT_EQ(end_of({.words = {"/dev/null"}, .group = group}), std::pair(Kind::kNotStarted, EACCES));
    Child lost({.words = {"true"}, .directory = "/no-such-directory", .group = group});
    ASSERT_TRUE(lost.end().has_value());
    EXPECT_TRUE(lost.end()->cwd && lost.end()->kind == Kind::kNotStarted);
  }
}

TEST(Child, HasTheGivenWorldAndNothingElse) {
  const test::TemporaryDirectory folder;
  const FileDescriptor zero(::open("/dev/zero", O_RDONLY));
  constexpr int kGiven = 50, kOther = 51;
  const FileDescriptor given(::fcntl(zero.get(), F_DUPFD_CLOEXEC, kGiven)),
      other(::fcntl(zero.get(), F_DUPFD, kOther));
  ::signal(SIGUSR2, SIG_IGN);
  for (const ChildGroup group : kGroups) {
    ChildStart start = shell_start(
        "cat; pwd; echo $A; for fd in 50 51; do test -e /proc/$$/fd/$fd && echo $fd; done; "
        "grep -E 'Sig(Blk|Ign)' /proc/self/status",
        group);
    start.environment = {"A=" + std::string(1000, 'b'), "PATH=/usr/bin:/bin"};
    start.directory = folder.path();
    start.inherited = {kGiven};
    EXPECT_EQ(output_of(start), std::filesystem::canonical(folder.path()).string() + "\n" +
                                    std::string(1000, 'b') +
                                    "\n50\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
  }
  ::signal(SIGUSR2, SIG_DFL);
}

TEST(Child, IsAskedToEndAndKilledWhenItDoesNot) {
  for (const ChildGroup group : kGroups) {
    Child polite(shell_start("trap 'exit 5' TERM; echo begun; while :; do sleep 0.01; done", group)),
        other(shell_start("trap '' TERM; echo begun; while :; do sleep 0.01; done", group));
    for (Child* child : {&polite, &other}) {
      child->wait(kLong);
      child->stop(100, 1);
      child->stop(100.9, 1);
    }
    EXPECT_EQ(polite.wait_for_end(kLong)->value, 5);
    EXPECT_FALSE(other.end().has_value());
    other.stop(101, 1);
    EXPECT_EQ(other.wait_for_end(kLong)->value, SIGKILL);
  }
}

// A daemon: it leaves the group and the program that has started it.
constexpr const char* kDaemon = "setsid sh -c 'echo $$ > daemon; exec sleep 100' & ";

TEST(Child, LeavesNothingOfAKeptProgram) {
  const test::TemporaryDirectory folder;
  ChildStart start = shell_start(std::string(kDaemon) + "while ! test -s daemon; do sleep 0.01; done");
  start.directory = folder.path();
  EXPECT_EQ(end_of(start), std::pair(Kind::kExit, 0));
  EXPECT_FALSE(is_alive(number_in(folder / "daemon")));
  std::filesystem::remove(folder / "daemon");
  start.words.back() += "; sleep 100";
  pid_t daemon = 0;
  {
    const Child killed(start);
    daemon = number_in(folder / "daemon");
    EXPECT_TRUE(is_alive(daemon));
  }
  EXPECT_FALSE(is_alive(daemon));
}

TEST(Child, SignalsToAProcessGroupDoNotKillAKeptProgram) {
  const test::TemporaryDirectory folder;
  ChildStart start =
      shell_start("echo $PPID > keeper; while ! test -e end; do sleep 0.01; done; exit 3", ChildGroup::kKept);
  start.directory = folder.path();
  Child child(start);
  for (const int signal : {SIGHUP, SIGINT, SIGUSR1, SIGUSR2}) ::kill(number_in(folder / "keeper"), signal);
  std::ofstream(folder / "end").close();
  EXPECT_EQ(child.wait_for_end(kLong)->value, 3);
}

TEST(Child, EndsWithItsParent) {
  const test::TemporaryDirectory folder;
  for (const ChildGroup group : kGroups) {
    const pid_t parent = ::fork();
    if (parent == 0) {
      ChildStart start =
          shell_start(std::string(group == ChildGroup::kKept ? kDaemon : "echo $$ > daemon; ") +
                          "echo $$ > program; exec sleep 100",
                      group);
      start.directory = folder.path();
      const Child child(start);
      for (;;) ::pause();
    }
    const pid_t daemon = number_in(folder / "daemon"), program = number_in(folder / "program");
    EXPECT_TRUE(is_alive(daemon) && is_alive(program));
    ::kill(parent, SIGKILL);
    ::waitpid(parent, nullptr, 0);
    EXPECT_TRUE(goes_away(daemon) && goes_away(program));
    std::filesystem::remove(folder / "daemon");
    std::filesystem::remove(folder / "program");
  }
}

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

}  // namespace sweep::child_test
