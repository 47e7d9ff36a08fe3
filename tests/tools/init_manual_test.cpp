// The first file of a new user, and the page that tells about all commands.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/file.h"
#include "tests/support/fashion_mnist.h"
#include "tests/support/program.h"
#include "tests/support/temporary_directory.h"
#include "tools/commands.h"
#include "tools/exit_code.h"

namespace sweep::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Init, WritesASweepThatTrainsAndReplacesNothing) {
  SKIP_WITHOUT_FASHION_MNIST();
  const test::TemporaryDirectory directory;
  ASSERT_EQ(run_program({"init", "my \"first\".json"}, directory.path()).code, 0);
  const Finished trained = run_program({"my \"first\".json", "lr=0.01", "epochs=1", "dataset.limit=300",
                                        "dataset.validation=50", "name=first"},
                                       directory.path());
  EXPECT_EQ(trained.code, 0) << trained.err;
  EXPECT_THAT(trained.out, HasSubstr("completed"));
  for (const char* taken : {"my \"first\".json", "my \"first\"-network.json"}) {
    const std::string content = read_file(directory.path() / taken);
    const Finished again = run_program({"init", "my \"first\".json"}, directory.path());
    EXPECT_EQ(again.code, 2);
    EXPECT_THAT(again.err, HasSubstr(std::string(taken) + ": is there already and is not replaced"));
    EXPECT_EQ(read_file(directory.path() / taken), content);
    std::filesystem::remove(directory.path() / taken);  // The other one alone is in the way, too.
  }
  EXPECT_THAT(run_program({"init", "sweep.txt"}, directory.path()).err,
              HasSubstr("want a name that ends in .json"));
}

TEST(Manual, HasEveryCommandAndOnlyWhatTroffReads) {
  const Finished manual = run_program({"manual"}, ".");
  ASSERT_EQ(manual.code, 0) << manual.err;
  for (const Command& command : all_commands()) {
    if (command.is_for_scripts) {
      EXPECT_THAT(manual.out, Not(HasSubstr("\n.SS sweep " + command.name + "\n")));
      continue;
    }
    std::string name = command.name;  // troff would make another character of a bare hyphen
    for (std::size_t at = 0; (at = name.find('-', at)) != std::string::npos; at += 2) name.insert(at, "\\");
    EXPECT_THAT(manual.out, HasSubstr("\n.SS sweep " + name));
  }
  EXPECT_THAT(manual.out, HasSubstr("\\fB\\-\\-max\\-time\\fR \\fISECONDS\\fR\n"));
  std::istringstream lines(manual.out);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('.')) {
      const std::string request = line.substr(1, line.find(' ') - 1);
      EXPECT_THAT((std::vector<std::string>{"TH", "SH", "SS", "TP", "br"}), ::testing::Contains(request))
          << line;
    }
    for (const char c : line) ASSERT_TRUE(c >= ' ' && c <= '~') << line;
  }
}

TEST(Manual, HasTheExitCodesOfTheHelpAndWhatTheProgramReadsFromTheEnvironment) {
  const std::string manual = run_program({"manual"}, ".").out, help = run_program({"--help"}, ".").out;
  for (const ExitCode& code : exit_codes()) {
    EXPECT_THAT(manual, HasSubstr(std::string(".TP\n\\fB") + code.code + "\\fR\n"));
    EXPECT_THAT(help, HasSubstr(std::string("\n  ") + code.code + " "));
    EXPECT_THAT(help, HasSubstr(code.meaning));
  }
  for (const char* name :
       {"SWEEP_DATA", "SWEEP_DATA_MIRROR", "SWEEP_CACHE_SIZE", "SWEEP_BF16", "SWEEP_CUDA_KERNELS",
        "SWEEP_CUDA_STEPS", "SWEEP_CUDA_OVERLAP", "XDG_CACHE_HOME", "NO_COLOR", "TERM"}) {
    EXPECT_THAT(manual, HasSubstr(std::string(".TP\n\\fB") + name + "\\fR\n"));
  }
}

}  // namespace
}  // namespace sweep::testing
