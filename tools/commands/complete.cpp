// `sweep complete`: what the shells' completion scripts ask. Not for people, so help does not show it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>

#include "core/base/printable.h"
#include "tools/commands.h"
#include "tools/completion/command_words.h"
#include "tools/exit_code.h"

namespace sweep {
namespace {

constexpr const char* kWordsFollow = "--";

// A line per candidate: the word, a tab and what it is. A last line ":files" asks for names of files.
void print(const Candidates& candidates) {
  for (const Candidate& candidate : candidates.list) {
    // A name with such a character could not be read back from its line.
    const bool is_plain = std::none_of(candidate.text.begin(), candidate.text.end(), [](char c) {
      return static_cast<unsigned char>(c) < ' ' || c == '\x7f';
    });
    if (is_plain) std::cout << candidate.text << '\t' << candidate.help << '\n';
  }
  if (candidates.files) std::cout << ":files\n";
}

}  // namespace

Command complete_command() {
  return {.name = "complete",
          .description = "what the words behind -- can go on with: a line each, with a tab before its help",
          .missing_argument = "",
          .add_to = [](CLI::App& app) -> CommandAction {
            auto words = std::make_shared<std::vector<std::string>>();
            app.add_option("words", *words, "the command line up to the cursor");
            return [words, &app](const std::vector<std::string>& typed) {
              // Not `words`: the parser drops empty ones.
              const auto follow = std::find(typed.begin(), typed.end(), kWordsFollow);
              if (follow == typed.end() || follow + 1 == typed.end()) return kExitDone;
              print(complete_words(*app.get_parent(), {follow + 1, typed.end()}));
              return kExitDone;
            };
          },
          .is_for_scripts = true};
}

}  // namespace sweep
