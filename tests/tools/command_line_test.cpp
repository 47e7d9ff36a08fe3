// What the words of a command line lead to.
#include "tools/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <new>

#include "core/base/error.h"
#include "tools/exit_code.h"

namespace sweep {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Commands that only note that they were called.
struct Called {
  std::string command;
  CommandLine line;
  int code = 0;

  Commands commands() {
    const auto note = [this](const char* name) {
      return [this, name](const CommandLine& l) {
        command = name;
        line = l;
        return code;
      };
    };
    return {note("run"),    note("plan"), note("show"),   note("devices"),
            note("schema"), note("fsck"), note("export"), note("verify")};
  }
  int operator()(const std::vector<std::string>& words) { return run_command_line(words, commands()); }
  std::string error(const std::vector<std::string>& words) {
    try {
      run_command_line(words, commands());
    } catch (const ConfigError& error) {
      return error.what();
    }
    ADD_FAILURE() << "accepted";
    return "";
  }
};

TEST(CommandLine, AFileAloneIsRun) {
  Called called;
  called.code = 75;
  EXPECT_EQ(called({"a/b.json", "lr=0.1,0.01", "epochs=3"}), 75);
  EXPECT_EQ(called.command, "run");
  EXPECT_EQ(called.line.file, "a/b.json");
  EXPECT_THAT(called.line.overrides, ElementsAre("lr=0.1,0.01", "epochs=3"));
  EXPECT_EQ(called.line.runner.logdir, "runs");
  EXPECT_EQ(called.line.runner.jobs, 1);
  EXPECT_EQ(called.line.runner.threads, 0);
  EXPECT_THAT(called.line.runner.command, ElementsAre("sweep", "a/b.json", "lr=0.1,0.01", "epochs=3"));
}

TEST(CommandLine, OptionsMayStandAnywhere) {
  Called called;
  called({"--logdir", "/tmp/x", "a.json", "--epochs", "3", "lr=1", "--seed=5", "--threads", "2", "seed=1",
          "--fresh", "--fail-fast", "--strict", "--quiet", "--json"});
  EXPECT_EQ(called.command, "run");
  EXPECT_EQ(called.line.file, "a.json");
  EXPECT_THAT(called.line.overrides, ElementsAre("lr=1", "seed=1"));
  EXPECT_EQ(called.line.runner.logdir, "/tmp/x");
  EXPECT_EQ(called.line.load.epochs, "3");
  EXPECT_EQ(called.line.load.seed, "5");
  EXPECT_EQ(called.line.runner.threads, 2);
  EXPECT_TRUE(called.line.runner.fresh && called.line.runner.fail_fast && called.line.runner.strict);
  EXPECT_TRUE(called.line.runner.quiet && called.line.json);
}

TEST(CommandLine, KernelsMayBeAskedForTheSameBitsOrNot) {
  Called called, yes, no;
  called({"a.json"});
  yes({"a.json", "--deterministic"});
  no({"plan", "a.json", "--no-deterministic"});
  EXPECT_EQ(called.line.load.deterministic, std::nullopt);
  EXPECT_EQ(yes.line.load.deterministic, true);
  EXPECT_EQ(no.line.load.deterministic, false);
}

TEST(CommandLine, HowRunsAreTrainedCanBeChosen) {
  Called called;
  called({"a.json", "--jobs", "4", "--retry", "2", "--timeout", "60", "--max-time=1.5", "--no-retry-failed"});
  EXPECT_EQ(called.line.runner.jobs, 4);
  EXPECT_EQ(called.line.runner.retry, 2);
  EXPECT_EQ(called.line.runner.timeout, 60);
  EXPECT_EQ(called.line.runner.max_time, 1.5);
  EXPECT_FALSE(called.line.runner.retry_failed);
  Called other;
  other({"a.json", "--jobs", "auto"});
  EXPECT_EQ(other.line.runner.jobs, 0);
  EXPECT_TRUE(other.line.runner.retry_failed);
}

TEST(CommandLine, NumbersOfJobsAndSecondsAreChecked) {
  Called called;
  for (const char* jobs : {"0", "-1", "two", "1.5", "1025"}) {
    EXPECT_THAT(called.error({"a.json", std::string("--jobs=") + jobs}),
                HasSubstr("want 1 to 1024, or auto"));
  }
  for (const char* option : {"--timeout=", "--max-time="}) {
    for (const char* seconds : {"-1", "nan", "inf", "soon"}) {
      EXPECT_THAT(called.error({"a.json", std::string(option) + seconds}),
                  HasSubstr("want a number of seconds >= 0"));
    }
  }
  EXPECT_TRUE(called.command.empty());
}

TEST(CommandLine, EveryCommandIsFound) {
  Called called;
  called({"run", "a.json"});
  EXPECT_EQ(called.command, "run");
  called({"plan", "a.json", "lr=1", "--json"});
  EXPECT_EQ(called.command, "plan");
  EXPECT_THAT(called.line.overrides, ElementsAre("lr=1"));
  EXPECT_TRUE(called.line.json);
  called({"show", "runs/a", "--json"});
  EXPECT_EQ(called.command, "show");
  EXPECT_EQ(called.line.file, "runs/a");
  called({"fsck", "runs/a", "--json"});
  EXPECT_EQ(called.command, "fsck");
  EXPECT_EQ(called.line.file, "runs/a");
  EXPECT_TRUE(called.line.json);
  called({"export", "--tag", "Loss/", "runs", "--tag=Accuracy/", "--format", "json", "-o", "a.csv"});
  EXPECT_EQ(called.command, "export");
  EXPECT_EQ(called.line.file, "runs");
  EXPECT_THAT(called.line.tags, ElementsAre("Loss/", "Accuracy/"));
  EXPECT_EQ(called.line.format, "json");
  EXPECT_EQ(called.line.output, "a.csv");
  called({"verify", "runs/a", "--runs", "3", "--threads", "2"});
  EXPECT_EQ(called.command, "verify");
  EXPECT_EQ(called.line.file, "runs/a");
  EXPECT_EQ(called.line.verify_runs, 3u);
  EXPECT_EQ(called.line.runner.threads, 2);
  called({"devices"});
  EXPECT_EQ(called.command, "devices");
  called({"schema"});
  EXPECT_EQ(called.command, "schema");
}

TEST(CommandLine, AMistypedCommandIsToldTheNearest) {
  Called called;
  EXPECT_EQ(called.error({"plna", "x.json"}),
            "plna: no such file, and no command: run, plan, show, fsck, verify, export, devices, schema, "
            "completion, "
            "did you mean "
            "\"plan\"?");
  EXPECT_EQ(called.error({"report", "runs/x"}), "the command report is not available in this version");
}

TEST(CommandLine, AMistypedOptionIsToldTheNearest) {
  Called called;
  EXPECT_THAT(called.error({"a.json", "--log-dir", "x"}), HasSubstr("unknown option --log-dir, allowed: "));
  EXPECT_THAT(called.error({"a.json", "--log-dir", "x"}), HasSubstr("did you mean \"--logdir\"?"));
  EXPECT_THAT(called.error({"plan", "a.json", "--fresh"}),
              HasSubstr("unknown option --fresh, allowed: --help, --epochs, --seed, --deterministic, "
                        "--no-deterministic, --json"));
  EXPECT_TRUE(called.command.empty());
}

TEST(CommandLine, OptionsThatAreNotBuiltAreNotAccepted) {
  Called called;
  for (const char* option : {"--fuse", "--launcher"}) {
    EXPECT_EQ(called.error({"a.json", option, "1"}),
              std::string(option) + " is not available in this version");
    EXPECT_EQ(called.error({"a.json", option + std::string("=1")}),
              std::string(option) + " is not available in this version");
  }
  EXPECT_TRUE(called.command.empty());
}

TEST(CommandLine, MissingAndWrongArgumentsAreMistakes) {
  Called called;
  EXPECT_THAT(called.error({}),
              AllOf(HasSubstr("a sweep file is needed, or a command:"),
                    HasSubstr("sweep SWEEP.json [key=v1,v2,... ...]"), HasSubstr("--help")));
  for (const std::vector<std::string>& words : {std::vector<std::string>{"run"}, {"--quiet"}}) {
    EXPECT_EQ(
        called.error(words),
        "a sweep file is needed: sweep SWEEP.json [key=v1,v2,... ...] [options]\nTry \"sweep run --help\".");
  }
  EXPECT_THAT(called.error({"plan"}), HasSubstr("a sweep file is needed: sweep plan SWEEP.json"));
  EXPECT_THAT(called.error({"show"}), HasSubstr("a directory is needed: sweep show runs/NAME"));
  EXPECT_THAT(called.error({"fsck"}), HasSubstr("a directory is needed: sweep fsck runs/NAME"));
  EXPECT_THAT(called.error({"export"}), HasSubstr("a log directory is needed: sweep export LOGDIR"));
  EXPECT_THAT(called.error({"completion"}), HasSubstr("a shell is needed: sweep completion bash|zsh|fish"));
  EXPECT_EQ(called.error({"lr=1"}), "a sweep file is needed in front of lr=1: sweep SWEEP.json lr=1");
  EXPECT_THAT(called.error({"a.json", "--threads", "many"}), HasSubstr("--threads"));
  EXPECT_THAT(called.error({"a.json", "--threads", "-1"}), HasSubstr("--threads"));
  EXPECT_THAT(called.error({"a.json", "--logdir"}), HasSubstr("--logdir"));
  EXPECT_THAT(called.error({"export", "runs", "--format", "xml"}), HasSubstr("--format"));
  EXPECT_THAT(called.error({"completion", "csh"}),
              HasSubstr("completion: got \"csh\", want bash, zsh or fish"));
  EXPECT_TRUE(called.command.empty());
}

TEST(CommandLine, AFileMayHaveTheNameOfACommandIfItIsWrittenAsAPath) {
  Called called;
  called({"./plan"});
  EXPECT_EQ(called.command, "run");
  EXPECT_EQ(called.line.file, "./plan");
}

std::string printed(const std::vector<std::string>& words) {
  Called called;
  ::testing::internal::CaptureStdout();
  const int code = called(words);
  const std::string text = ::testing::internal::GetCapturedStdout();
  EXPECT_EQ(code, 0);
  EXPECT_TRUE(called.command.empty());
  return text;
}

TEST(CommandLine, HelpAndVersionGoToStandardOutput) {
  EXPECT_THAT(printed({"--help"}), HasSubstr("Usage: sweep SWEEP.json [key=v1,v2,... ...] [options]"));
  EXPECT_THAT(printed({"run", "--help"}), HasSubstr("--logdir DIR"));
  EXPECT_THAT(printed({"a.json", "--help"}), HasSubstr("--fail-fast"));
  EXPECT_THAT(printed({"plan", "-h"}), HasSubstr("batch_size"));
  EXPECT_THAT(printed({"--version"}), ::testing::StartsWith("sweep "));
}

TEST(CommandLine, CompletionKnowsEveryCommandAndOption) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const std::string script = printed({"completion", shell});
    for (const char* word : {"run", "plan", "show", "fsck", "export", "devices", "schema", "completion",
                             "logdir", "fail-fast", "json"}) {
      EXPECT_THAT(script, HasSubstr(word)) << shell;
    }
  }
}

TEST(ExitCode, TellsBadInputFromOutputThatCannotBeWritten) {
  EXPECT_EQ(exit_code(ConfigError("")), 2);
  EXPECT_EQ(exit_code(ShapeError("")), 2);
  EXPECT_EQ(exit_code(DataError("")), 2);
  EXPECT_EQ(exit_code(IoError("")), 3);
  EXPECT_EQ(exit_code(std::filesystem::filesystem_error("", std::error_code())), 3);
  EXPECT_EQ(exit_code(DeviceError("")), 1);
  EXPECT_EQ(exit_code(TrainingError("")), 1);
  EXPECT_EQ(exit_code(std::bad_alloc()), 1);
}

}  // namespace
}  // namespace sweep
