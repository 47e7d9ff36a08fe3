#include "runmanager/kinds/command/command_words.h"

#include "tests/support/test.h"

namespace sweep::command_words_test {

std::vector<std::string> words_of(std::vector<std::string> words, const Params& params, bool shell = false,
                                  std::uint32_t repeat = 0) {
  CommandSpec spec;
  spec.words = std::move(words);
  spec.shell = shell;
  RunConfig config;
  config.params = params;
  config.repeat = repeat;
  config.command = std::make_shared<const CommandSpec>(spec);
  return command_words({.config = config, .run_directory = "/run"});
}

std::string shell_text_of(const std::string& text, const Params& params) {
  return words_of({text}, params, true).back();
}

TEST(CommandWords, ParametersMayHaveAnyName) {
  const Params params = {{"+opt.lr", 0.1}, {"a b", std::int64_t{2}}, {"\u00fc}", std::string("x")}};
  EXPECT_THAT(
      words_of({"{+opt.lr}", "--n={a b}", "{\u00fc}}", "{{a b}}", "${a b}", "{a  b}", "{print $1}", "{"},
               params),
      ElementsAre("0.1", "--n=2", "x", "{a b}", "${a b}", "{a  b}", "{print $1}", "{"));
  EXPECT_EQ(shell_text_of("echo {a b} '{print $1}'", params), "echo '2' '{print $1}'");
}

TEST(CommandWords, AWordWhoseParameterTheRunLacksIsLeftOutAlsoForAShell) {
  const Params params = {{"lr", 0.5}};
  EXPECT_THAT(words_of({"echo", "--m={m}", "{lr}"}, params), ElementsAre("echo", "0.5"));
  EXPECT_EQ(shell_text_of("echo --m={m} --lr={lr}", params), "echo  --lr='0.5'");
  EXPECT_EQ(shell_text_of("a --m={m}; b {lr}>'x y'{m} && c \"d {m}\"|e \\ {m}", params),
            "a ; b '0.5'> && c |e ");
}

TEST(CommandWords, TheSeedOfARepeatIsItsOwnAlsoIfItIsAParameter) {
  const Params params = {{"seed", std::int64_t{5}}, {"repeat", std::int64_t{2}}};
  EXPECT_THAT(words_of({"{seed}", "{flags}", "{overrides}"}, params, false, 2),
              ElementsAre("7", "--seed=7", "seed=7"));
  EXPECT_THAT(words_of({"{seed}"}, {{"repeat", std::int64_t{2}}}, false, 2), ElementsAre("2"));
  RunConfig config;
  config.params = params;
  config.repeat = 2;
  EXPECT_THAT(params_text(config), HasSubstr("\"seed\": 7"));
}

}  // namespace sweep::command_words_test
