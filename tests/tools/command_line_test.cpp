// The command line: which command runs with which options, and the messages for mistakes.
#include "tools/command_line.h"

#include <CLI/CLI.hpp>
#include <new>

#include "tests/support/reference_data.h"
#include "tests/support/test.h"
#include "tools/commands.h"
#include "tools/commands/run_options.h"

namespace sweep::command_line_test {

/// The real commands, with actions that only record the call.
struct Called {
  std::string command;
  std::vector<std::string> typed;
  std::map<std::string, std::vector<std::string>>
      options;  // by name, positional ones without "--"; of a flag {}
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
            if (option->count() == 0) continue;
            const bool is_flag = option->get_items_expected_max() == 0;
            options[option->get_name()] = is_flag ? CLI::results_t() : option->results();
          }
          return code;
        };
      };
    }
    return all;
  }
  int operator()(const std::vector<std::string>& words) { return run_command_line(words, commands()); }
  std::string error(const std::vector<std::string>& words) {
    return message_of<ConfigError>([&] { run_command_line(words, commands()); });
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

TEST_F(CommandLine, ADirectoryWithADashIsNoOptionInAHint) {
  EXPECT_EQ(logdir_of(parse_run({"a.json", "--logdir", "-x/y"}).sweep), "./-x/y");
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

// Rows of command_lines.json: what is typed, and the command with its options, those of flags without values.
TEST_F(CommandLine, EveryCommandIsFoundWithItsOptions) {
  const nlohmann::json rows = test::reference_json("command_lines.json").at("calls");
  for (const auto& row : rows) {
    called(row.at("words"));
    EXPECT_EQ(called.command, row.at("command").get<std::string>()) << row;
    EXPECT_EQ(nlohmann::json(called.options), row.at("options")) << row;
  }
  EXPECT_THAT(called.typed, ElementsAre("sweep", "watch", "runs/a")) << "what was typed, to say how to go on";
}

// Rows of command_lines.json: what is typed, and a part of the message.
TEST_F(CommandLine, EveryMistakeSaysWhatIsWantedAndRunsNothing) {
  const nlohmann::json rows = test::reference_json("command_lines.json").at("mistakes");
  for (const auto& row : rows)
    EXPECT_THAT(called.error(row.at("words")), HasSubstr(row.at("has").get<std::string>())) << row;
  EXPECT_TRUE(called.command.empty());
}

std::string printed(const std::vector<std::string>& words) {
  ::testing::internal::CaptureStdout();
  const int code = run_command_line(words, all_commands());
  const std::string text = ::testing::internal::GetCapturedStdout();
  EXPECT_EQ(code, 0);
  return text;
}

TEST_F(CommandLine, HelpAndVersionGoToStandardOutput) {
  EXPECT_THAT(printed({"--help"}), AllOf(HasSubstr("Usage: sweep SWEEP.json [key=v1,v2,... ...] [options]"),
                                         Not(AnyOf(HasSubstr("\n  ls "), HasSubstr("\n  watch ")))));
  EXPECT_THAT(printed({"run", "--help"}), AllOf(HasSubstr("--logdir DIR"), Not(HasSubstr("{false}"))));
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
  EXPECT_THAT(printed({"help"}),
              AllOf(HasSubstr("a run failed, or memory ran out"), HasSubstr("\n  or:  sweep COMMAND")))
      << "the manual page is made of it";
  EXPECT_THAT(printed({"show", "--help"}), Not(HasSubstr("Exit codes")));
}

TEST_F(CommandLine, CompletionKnowsEveryCommandAndOption) {
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
  EXPECT_EQ(printed({"complete", "--", "help", "pla"}), "plan\t" + plan_command().description + "\n");
  EXPECT_EQ(printed({"complete"}), "") << "and no mistake where nothing is asked";
}

// Row: what is typed, and what is offered: files only where they can be given, after a part of the word or
// not.
TEST_F(CommandLine, CompletionOffersFilesWhereTheyAreTaken) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> rows = {
      {{"show", "runs/s/lr=0.1,b"}, ":files\t\n"},
      {{"evaluate", "r", "--data=a=b/c"}, ":files\t--data=\n"},
      {{"s.json", "init=runs/lr=0.1/ch"}, ":files\tinit=\n"},
      {{"s.json", "device=c"}, "device=cpu\t\ndevice=cuda\t\n"},
      {{"s.json", "optimizer=r"}, "optimizer=rmsprop\t\n"},
      {{"show", "runs/s", "--sort", ""}, ""},
      {{"s.json", "--jobs", ""}, ""},
      {{"lr=1", "--", "python3", "tr"}, ":files\t\n"}};
  for (const auto& [words, offered] : rows) {
    EXPECT_EQ(printed(joined({"complete", "--"}, words)), offered) << ::testing::PrintToString(words);
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

}  // namespace sweep::command_line_test
