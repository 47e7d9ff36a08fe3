// The command line: which command runs with which options, and the messages for mistakes.
#include "tools/command_line.h"

#include <CLI/CLI.hpp>
#include <new>

#include "tests/support/test.h"
#include "tools/commands.h"
#include "tools/commands/run_options.h"

namespace sweep::command_line_test {

using ::testing::_;

/// The real commands, with actions that only record the call.
struct Called {
  std::string command;
  std::vector<std::string> typed;
  std::map<std::string, std::vector<std::string>> options;  // by name, positional ones without "--"
  int code = 0;

  std::vector<Command> commands() {
    std::vector<Command> all = all_commands();
    for (Command& row : all) {
      row.add_to = [this, name = row.name, add_to = row.add_to](CLI::App& app) -> CommandAction {
        const CommandAction owner_of_options = add_to(app);
        return [this, name, owner_of_options, &app](const std::vector<std::string>& words) {
          command = name;
          typed = words;
          options.clear();
          for (const CLI::Option* option : app.get_options()) {
            if (option->count() > 0) options[option->get_name()] = option->results();
          }
          return code;
        };
      };
    }
    return all;
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

/// What the words of `sweep run` are parsed into.
RunOptions parse_run(const std::vector<std::string>& words) {
  RunOptions options;
  const Command run = {
      .name = kDefaultCommand, .description = "", .add_to = [&](CLI::App& app) -> CommandAction {
        add_run_options(app, options);
        return [](const auto&) { return 0; };
      }};
  EXPECT_EQ(run_command_line(words, {run}), 0);
  return options;
}

struct CommandLine : ::testing::Test {
  Called called;
};

TEST_F(CommandLine, AFileAloneIsRun) {
  called.code = 75;
  EXPECT_EQ(called({"a/b.json", "lr=0.1,0.01", "epochs=3"}), 75);
  EXPECT_EQ(called.command, "run");
  EXPECT_THAT(called.typed, ElementsAre("sweep", "a/b.json", "lr=0.1,0.01", "epochs=3"));
  const RunOptions options = parse_run({"a/b.json", "lr=0.1,0.01", "epochs=3"});
  EXPECT_EQ(options.sweep.file, "a/b.json");
  EXPECT_THAT(options.sweep.overrides, ElementsAre("lr=0.1,0.01", "epochs=3"));
  EXPECT_EQ(logdir_of(options.sweep), "runs");
  EXPECT_EQ(options.runner.jobs, 1);
  EXPECT_EQ(options.runner.threads, 0);
}

TEST_F(CommandLine, OptionsMayStandAnywhere) {
  const RunOptions options =
      parse_run({"--logdir", "/tmp/x", "a.json", "--epochs", "3", "lr=1", "--seed=5", "--threads", "2",
                 "seed=1", "--fresh", "--fail-fast", "--strict", "--quiet", "--json"});
  EXPECT_EQ(options.sweep.file, "a.json");
  EXPECT_THAT(options.sweep.overrides, ElementsAre("lr=1", "seed=1"));
  EXPECT_EQ(logdir_of(options.sweep), "/tmp/x");
  EXPECT_EQ(options.sweep.load.epochs, "3");
  EXPECT_EQ(options.sweep.load.seed, "5");
  EXPECT_EQ(options.runner.threads, 2);
  EXPECT_TRUE(options.runner.fresh && options.runner.fail_fast && options.runner.strict);
  EXPECT_TRUE(options.runner.quiet && options.runner.json);
  EXPECT_FALSE(options.runner.join || options.runner.leave);
  const RunOptions joined = parse_run({"a.json", "--join", "--leave"});
  EXPECT_TRUE(joined.runner.join && joined.runner.leave);
}

TEST_F(CommandLine, DeterminismIsTheFilesUnlessAnOptionSaysOtherwise) {
  EXPECT_EQ(parse_run({"a.json"}).sweep.load.deterministic, std::nullopt);
  EXPECT_EQ(parse_run({"a.json", "--deterministic"}).sweep.load.deterministic, true);
  EXPECT_EQ(parse_run({"a.json", "--no-deterministic"}).sweep.load.deterministic, false);
}

TEST_F(CommandLine, RunnerOptionsAreParsed) {
  const RunOptions options = parse_run(
      {"a.json", "--jobs", "4", "--retry", "2", "--timeout", "60", "--max-time=1.5", "--no-retry-failed"});
  EXPECT_EQ(options.runner.jobs, 4);
  EXPECT_EQ(options.runner.retry, 2);
  EXPECT_EQ(options.runner.timeout, 60);
  EXPECT_EQ(options.runner.max_time, 1.5);
  EXPECT_FALSE(options.runner.retry_failed);
  const RunOptions others = parse_run({"a.json", "--jobs", "auto"});
  EXPECT_EQ(others.runner.jobs, 0);
  EXPECT_TRUE(others.runner.retry_failed);
}

TEST_F(CommandLine, NumbersOfJobsAndSecondsAreChecked) {
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

TEST_F(CommandLine, EveryCommandIsFoundWithItsOptions) {
  called({"run", "a.json"});
  EXPECT_EQ(called.command, "run");
  called({"plan", "a.json", "lr=1", "--json", "--no-deterministic"});
  EXPECT_EQ(called.command, "plan");
  EXPECT_THAT(called.options, UnorderedElementsAre(Pair("file", ElementsAre("a.json")),
                                                   Pair("overrides", ElementsAre("lr=1")), Pair("--json", _),
                                                   Pair("--no-deterministic", _)));
  for (const char* command : {"show", "fsck"}) {
    called({command, "runs/a", "--json"});
    EXPECT_EQ(called.command, command);
    EXPECT_THAT(called.options,
                UnorderedElementsAre(Pair("directory", ElementsAre("runs/a")), Pair("--json", _)));
  }
  called({"export", "--tag", "Loss/", "runs", "--tag=Accuracy/", "--format", "json", "-o", "a.csv"});
  EXPECT_EQ(called.command, "export");
  EXPECT_THAT(called.options, UnorderedElementsAre(Pair("logdir", ElementsAre("runs")),
                                                   Pair("--tag", ElementsAre("Loss/", "Accuracy/")),
                                                   Pair("--format", ElementsAre("json")),
                                                   Pair("--output", ElementsAre("a.csv"))));
  called({"verify", "runs/a", "--runs", "3", "--threads", "2"});
  EXPECT_EQ(called.command, "verify");
  EXPECT_THAT(called.options,
              UnorderedElementsAre(Pair("directory", ElementsAre("runs/a")), Pair("--runs", ElementsAre("3")),
                                   Pair("--threads", ElementsAre("2"))));
  called({"devices", "--json"});
  EXPECT_EQ(called.command, "devices");
  called({"schema"});
  EXPECT_EQ(called.command, "schema");
  called({"completion", "zsh"});
  EXPECT_EQ(called.command, "completion");
}

TEST_F(CommandLine, AMistypedCommandGetsTheNearestSuggested) {
  EXPECT_EQ(
      called.error({"plna", "x.json"}),
      "plna: no such file, and no command: run, resume, plan, lr-find, show, status, cancel, compare, "
      "report, fsck, verify, predict, evaluate, export-model, export, import, data, devices, schema, init, "
      "completion, did you "
      "mean \"plan\"?");
  EXPECT_THAT(called.error({"rapport", "runs/x"}), HasSubstr("rapport: no such file, and no command: run, "));
  EXPECT_THAT(called.error({"help", "plna"}), HasSubstr("did you mean \"plan\"?"));
}

TEST_F(CommandLine, AMistypedOptionGetsTheNearestSuggested) {
  EXPECT_THAT(called.error({"a.json", "--log-dir", "x"}), HasSubstr("unknown option --log-dir, allowed: "));
  EXPECT_THAT(called.error({"a.json", "--log-dir", "x"}), HasSubstr("did you mean \"--logdir\"?"));
  EXPECT_THAT(called.error({"plan", "a.json", "--retry"}),
              HasSubstr("unknown option --retry, allowed: --help, --name, --epochs, --seed, "
                        "--deterministic, --no-deterministic, --logdir, --fresh, --replace, --jobs, "
                        "--threads, --pilot, --format, --json"));
  EXPECT_TRUE(called.command.empty());
}

TEST_F(CommandLine, WhatFollowsTwoDashesIsAProgramAndNoneOfItsWordsAnOption) {
  EXPECT_THAT(called.error({"lr=1,2", "--"}), HasSubstr("a program is needed after --"));
  EXPECT_THAT(called.error({"lr=1,2", "--jbos", "2", "--", "true", "--jbos"}),
              HasSubstr("unknown option --jbos"));
}

TEST_F(CommandLine, MissingAndWrongArgumentsAreMistakes) {
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
  EXPECT_THAT(called.error({"verify"}), HasSubstr("a directory is needed: sweep verify runs/NAME"));
  EXPECT_THAT(called.error({"export"}), HasSubstr("a log directory is needed: sweep export LOGDIR"));
  EXPECT_THAT(called.error({"completion"}), HasSubstr("a shell is needed: sweep completion bash|zsh|fish"));
  EXPECT_EQ(called.error({"lr=1"}), "a sweep file is needed in front of lr=1: sweep SWEEP.json lr=1");
  EXPECT_THAT(called.error({"a.json", "--threads", "many"}), HasSubstr("--threads"));
  EXPECT_THAT(called.error({"a.json", "--threads", "-1"}), HasSubstr("--threads"));
  EXPECT_THAT(called.error({"a.json", "--logdir"}), HasSubstr("--logdir"));
  EXPECT_THAT(called.error({"export", "runs", "--format", "xml"}), HasSubstr("--format"));
  EXPECT_THAT(called.error({"lr-find", "a.json", "--logdir", "x"}),
              HasSubstr("--logdir requires --tensorboard"));
  EXPECT_TRUE(called.command.empty());
}

TEST_F(CommandLine, AFileMayHaveTheNameOfACommandIfItIsWrittenAsAPath) {
  called({"./plan"});
  EXPECT_EQ(called.command, "run");
  EXPECT_THAT(called.options, ElementsAre(Pair("file", ElementsAre("./plan"))));
}

std::string printed(const std::vector<std::string>& words) {
  ::testing::internal::CaptureStdout();
  const int code = run_command_line(words, all_commands());
  const std::string text = ::testing::internal::GetCapturedStdout();
  EXPECT_EQ(code, 0);
  return text;
}

TEST_F(CommandLine, HelpAndVersionGoToStandardOutput) {
  EXPECT_THAT(printed({"--help"}), HasSubstr("Usage: sweep SWEEP.json [key=v1,v2,... ...] [options]"));
  EXPECT_THAT(printed({"run", "--help"}), HasSubstr("--logdir DIR"));
  EXPECT_THAT(printed({"a.json", "--help"}), HasSubstr("--fail-fast"));
  EXPECT_THAT(printed({"plan", "-h"}), AllOf(HasSubstr("batch_size"), Not(HasSubstr("precision"))));
  EXPECT_THAT(printed({"resume", "--help"}),
              AllOf(HasSubstr("the directory of a sweep, runs/NAME"), Not(HasSubstr("the sweep file, or"))));
  EXPECT_EQ(printed({"help"}), printed({"--help"}));
  EXPECT_EQ(printed({"help", "help"}), printed({"--help"}));
  EXPECT_EQ(printed({"help", "plan"}), printed({"plan", "--help"}));
  EXPECT_EQ(printed({"help", "plan", "a.json", "lr=1"}), printed({"plan", "--help"}));
  EXPECT_EQ(printed({"help", "--"}), printed({"run", "--help"}));
  EXPECT_EQ(printed({"help", "--", "python3", "help"}), printed({"run", "--help"}));
  EXPECT_THAT(printed({"--version"}), StartsWith("sweep "));
}

TEST_F(CommandLine, OldWordsStandForStatusAndHelpDoesNotNameThem) {
  called({"ls", "there", "--json"});
  EXPECT_EQ(called.command, "status");
  EXPECT_THAT(called.options,
              UnorderedElementsAre(Pair("directory", ElementsAre("there")), Pair("--json", _)));
  called({"watch", "runs/a"});
  EXPECT_EQ(called.command, "status");
  EXPECT_THAT(called.options,
              UnorderedElementsAre(Pair("directory", ElementsAre("runs/a")), Pair("--follow", _)));
  EXPECT_THAT(called.typed, ElementsAre("sweep", "watch", "runs/a")) << "what was typed, to say how to go on";
  EXPECT_THAT(printed({"--help"}), Not(AnyOf(HasSubstr("\n  ls "), HasSubstr("\n  watch "))));
}

TEST_F(CommandLine, CompletionKnowsEveryCommandAndOption) {
  EXPECT_THAT(test::message_of<ConfigError>([] {
                run_command_line({"completion", "csh"}, all_commands());
              }),
              HasSubstr("csh not in {bash,zsh,fish}"));
  for (const char* shell : {"bash", "zsh", "fish"})
    EXPECT_THAT(printed({"completion", shell}), HasSubstr("complete --")) << shell;
  const std::string first = printed({"complete", "--", ""});
  for (const Command& command : all_commands()) {
    if (command.is_for_scripts) {
      EXPECT_THAT(first, Not(HasSubstr(command.name + "\t")));
      continue;
    }
    EXPECT_THAT(first, HasSubstr(command.name + "\t" + command.description + "\n"));
    CLI::App app;
    command.add_to(app);
    const std::string options = printed({"complete", "--", command.name, "--"});
    for (const std::string& option : long_options(app)) EXPECT_THAT(options, HasSubstr(option + "\t"));
  }
  EXPECT_EQ(printed({"complete"}), "") << "and no mistake where nothing is asked";
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

}  // namespace sweep::command_line_test
