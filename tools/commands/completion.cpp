// `sweep completion`: prints a script that completes this command line in a shell; and `sweep complete`,
// which such scripts ask what the line can go on with.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>

#include "core/base/printable.h"
#include "runmanager/sweepfile/key_path.h"
#include "runmanager/sweepfile/settings/settings.h"
#include "tools/commands.h"
#include "tools/exit_code.h"

namespace sweep {
namespace {

using Words = std::vector<std::string>;

// Commands, options, keys and choices have one place, so the scripts know none of them. A word that ends with
// "=", "." or "/" goes on, so no blank follows it.

// bash parts words at = and : as well, and replaces only what comes after the last of them.
constexpr const char* kBash = R"script(_sweep() {
  local line=${COMP_LINE:0:COMP_POINT} words word prefix= candidate files= IFS=$' \t\n'
  read -ra words <<<"$line"
  [[ $line == *[[:space:]] ]] && words+=('')
  word=${words[-1]}
  [[ $word == *[=:]* ]] && prefix=${word%"${word##*[=:]}"}
  COMPREPLY=()
  while IFS=$'\t' read -r candidate _; do
    if [[ $candidate == :files ]]; then files=1
    elif [[ $candidate == *[[:space:]\'\"\\\$\&\;\(\)\<\>\|\*\?\`]* ]]; then
      COMPREPLY+=("$(printf %q "${candidate#"$prefix"}")")
    else COMPREPLY+=("${candidate#"$prefix"}"); fi
  done < <("${words[0]/#\~/$HOME}" complete -- "${words[@]:1}" 2>/dev/null)
  if [[ $files ]]; then
    while read -r candidate; do COMPREPLY+=("$candidate"); done < <(compgen -f -- "${word#"$prefix"}")
    compopt -o filenames 2>/dev/null
  fi
  [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[=./] ]] && compopt -o nospace 2>/dev/null
  return 0
}
complete -F _sweep sweep
)script";

constexpr const char* kZsh = R"script(#compdef sweep
_sweep() {
  local -a lines go_on go_on_shown whole whole_shown
  local line text help
  lines=("${(@f)$("${(Q)words[1]}" complete -- "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
  for line in $lines; do
    text=${line%%$'\t'*} help=${line#*$'\t'}
    [[ -n $help ]] && help="$text  -- $help" || help=$text
    if [[ $text == :files ]]; then
      compset -P '*='
      _files
    elif [[ $text == *[=./] ]]; then
      go_on+=("$text") go_on_shown+=("$help")
    elif [[ -n $text ]]; then
      whole+=("$text") whole_shown+=("$help")
    fi
  done
  (( $#go_on )) && compadd -l -d go_on_shown -S '' -a go_on
  (( $#whole )) && compadd -l -d whole_shown -a whole
  return 0
}
(( $+functions[compdef] )) && compdef _sweep sweep
)script";

constexpr const char* kFish = R"script(function __sweep_complete
  set -l words (commandline -opc)
  set -l word (commandline -ct)
  for line in ($words[1] complete -- $words[2..-1] "$word" 2>/dev/null)
    if test "$line" = ":files"
      __fish_complete_path (string replace -r '^.*=' '' -- "$word")
    else
      echo $line
    end
  end
end
complete -c sweep -f -a '(__sweep_complete)'
)script";

// A line per candidate for the word at the cursor: the candidate, a tab and what it is. One that ends with
// "=" or "." goes on. The line ":files" asks for names of files, which shells know best.
class Offers {
 public:
  explicit Offers(std::string word) : word_(std::move(word)) {}
  const std::string& word() const { return word_; }
  void add(const std::string& text, const std::string& help = "") const {
    if (text.starts_with(word_) && printable_line(text) == text) std::cout << text << '\t' << help << '\n';
  }
  void add_files() const { std::cout << ":files\n"; }

 private:
  std::string word_;
};

// The keys below a key of sweep files, or at the top for "".
std::vector<Setting> parts_of(const std::string& key) {
  const std::optional<Setting> setting = key.empty() ? std::nullopt : setting_at(key_path(key));
  std::vector<Setting> parts;
  if (key.empty()) {
    std::ranges::copy(file_settings(), std::back_inserter(parts));
  } else if (setting && setting->format && setting->format->settings != nullptr) {
    std::ranges::copy(setting->format->settings(), std::back_inserter(parts));
  } else if (setting) {
    for (const NamedType& type : named_types(*setting)) {
      for (const ArgumentType& argument : type.arguments) parts.push_back({argument});
    }
  }
  return parts;
}

// Keys of sweep files, and the values that they have by name: "device=", "optimizer.", "optimizer=adam,sgd".
void add_keys(const Offers& offers) {
  const std::string& word = offers.word();
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos) {
    const std::size_t dot = word.rfind('.');
    const std::string parent = dot == std::string::npos ? "" : word.substr(0, dot);
    for (const Setting& part : parts_of(parent)) {
      const std::string key = parent.empty() ? part.name : parent + "." + part.name;
      offers.add(key + "=", part.help);
      if (!parts_of(key).empty()) offers.add(key + ".");
    }
    return;
  }
  const std::size_t comma = word.rfind(',');
  const std::string before = word.substr(0, (comma == std::string::npos ? equals : comma) + 1);
  const std::string key = word.substr(0, equals);
  std::vector<std::string> values;
  if (const std::optional<Setting> setting = setting_at(key_path(key))) {
    values = setting->kind == ArgumentKind::kBoolean ? std::vector<std::string>{"true", "false"}
             : key == "dataset" ? std::vector<std::string>(dataset_names().begin(), dataset_names().end())
             : setting->choices.empty() ? type_names(named_types(*setting))
                                        : setting->choices;
  }
  for (const std::string& value : values) offers.add(before + value);
  offers.add_files();
}

// The choices "{a,b}" in the type that the parser shows for an option, or files.
void add_values(const std::string& type, const Offers& offers, const std::string& before = "") {
  const std::size_t begin = type.find('{'), end = type.find('}');
  if (begin == std::string::npos) return offers.add_files();
  for (const std::string& choice : CLI::detail::split(type.substr(begin + 1, end - begin - 1), ','))
    offers.add(before + choice);
}

// Throws CLI::OptionNotFound if the command has no such option.
const CLI::Option& option_of(const CLI::App& command, const std::string& word) {
  return *command.get_option(word.substr(0, word.find('=')));
}

// `words`: the command line up to the cursor, without the program. A first word that is no command is a file.
void complete(const CLI::App& app, const Words& words) {
  const Offers offers(words.back());
  const auto commands = app.get_subcommands(nullptr);
  const auto named = std::ranges::find(commands, words[0], [](const CLI::App* c) { return c->get_name(); });
  const bool is_named = words.size() > 1 && named != commands.end();
  const CLI::App& command = is_named ? **named : *app.get_subcommand(kDefaultCommand);
  std::size_t position = 0;             // among the positionals
  const CLI::Option* option = nullptr;  // waits for its value
  for (std::size_t i = is_named ? 1 : 0; i + 1 < words.size(); ++i) {
    if (option != nullptr)
      option = nullptr;
    else if (!words[i].starts_with("-"))
      ++position;
    else if (words[i].find('=') == std::string::npos &&
             option_of(command, words[i]).get_items_expected_max() > 0)
      option = &option_of(command, words[i]);
  }
  if (option != nullptr) return add_values(option->get_type_name(), offers);
  if (const std::size_t equals = offers.word().find('='); offers.word().starts_with("-")) {
    if (equals != std::string::npos)
      return add_values(option_of(command, offers.word()).get_type_name(), offers,
                        offers.word().substr(0, equals + 1));
    for (const CLI::Option* each : command.get_options()) {
      for (const std::string& name : each->get_lnames()) offers.add("--" + name, each->get_description());
    }
    return;
  }
  if (words.size() == 1) {
    for (const CLI::App* each : commands) {
      if (!each->get_group().empty()) offers.add(each->get_name(), each->get_description());
    }
    return offers.add_files();
  }
  const auto positionals = command.get_options([](const CLI::Option* o) { return o->get_positional(); });
  if (positionals.empty()) return;
  const std::string type = positionals[std::min(position, positionals.size() - 1)]->get_type_name();
  return type == "KEY=VALUE" ? add_keys(offers) : add_values(type, offers);
}

}  // namespace

Command completion_command() {
  return {.name = "completion",
          .description = "print a completion script for a shell",
          .missing_argument = "a shell is needed: sweep completion bash|zsh|fish",
          .add_to = [](CLI::App& app) -> CommandAction {
            auto shell = std::make_shared<std::string>();
            app.add_option("shell", *shell, "whose script it is")
                ->check(CLI::IsMember({"bash", "zsh", "fish"}))
                ->required();
            return [shell](const auto&) {
              std::cout << (*shell == "bash" ? kBash : *shell == "zsh" ? kZsh : kFish);
              return kExitDone;
            };
          }};
}

Command complete_command() {
  return {.name = "complete",
          .description = "what the words after -- can go on with: a line each, with a tab before its help",
          .add_to = [](CLI::App& app) -> CommandAction {
            auto words = std::make_shared<Words>();
            app.add_option("words", *words, "the command line up to the cursor");
            return [words, &app](const Words& typed) {
              // Not `words`: the parser drops empty ones.
              const auto follow = std::ranges::find(typed, "--");
              if (follow == typed.end() || follow + 1 == typed.end()) return kExitDone;
              try {
                complete(*app.get_parent(), {follow + 1, typed.end()});
              } catch (const CLI::OptionNotFound&) {
                // There is nothing to offer after a mistyped option.
              }
              return kExitDone;
            };
          },
          .is_for_scripts = true};
}

}  // namespace sweep
