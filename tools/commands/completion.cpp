// `sweep completion`: prints a script that completes this command line in a shell; and `sweep complete`,
// which such scripts ask what the line can go on with.
#include <algorithm>
#include <memory>
#include <optional>
#include <span>

#include "core/base/printable.h"
#include "core/data/known_datasets.h"
#include "runmanager/sweepfile/key_path.h"
#include "runmanager/sweepfile/settings/settings.h"
#include "tools/output.h"

namespace sweep {
namespace {

using Words = std::vector<std::string>;

// Commands, options, keys and choices have one place, so the scripts know none of them. A word that ends with
// "=", "." or "/" goes on, so no blank follows it.

// bash parts words at = and : as well, and replaces only what comes after the last of them. It gives the line
// as typed, so quotes are taken off here; with the option filenames it quotes what it inserts.
constexpr const char* kBash = R"script(_sweep() {
  local line=${COMP_LINE:0:COMP_POINT} words=() word= prefix= quote= quotes= c i candidate lead
  for ((i = 0; i < ${#line}; ++i)); do
    c=${line:i:1}
    if [[ $quote && $c == "$quote" ]]; then quote=
    elif [[ $c == \\ && $quote != \' ]]; then word+=${line:i+1:1} i=$((i + 1))
    elif [[ $quote ]]; then word+=$c
    elif [[ $c == [\'\"] ]]; then quote=$c
    elif [[ $c == [[:space:]] ]]; then
      [[ $word ]] && words+=("$word")
      word= prefix=
    else
      word+=$c
      [[ $c == [=:] ]] && prefix=$word
    fi
  done
  words+=("$word")
  COMPREPLY=()
  while IFS=$'\t' read -r candidate lead; do
    if [[ $candidate == :files ]]; then
      quotes=1
      word=${word#"$lead"} word=${word//\\/\\\\} word=${word//\'/\\\'} word=${word//\"/\\\"}
      while IFS= read -r candidate; do
        # bash does not see that what it is given of "runs/lr=0.1" is a folder.
        [[ $prefix != "$lead" && -d $candidate ]] && candidate+=/
        candidate=$lead$candidate COMPREPLY+=("${candidate#"$prefix"}")
      done < <(compgen -f -- "$word")
    else
      [[ $candidate == *[[:space:]\'\"\\\$\&\;\(\)\<\>\|\*\?\`]* ]] && quotes=1
      COMPREPLY+=("${candidate#"$prefix"}")
    fi
  done < <("${words[0]/#\~/$HOME}" complete -- "${words[@]:1}" 2>/dev/null)
  [[ $quotes ]] && compopt -o filenames 2>/dev/null
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
      compset -P "${(b)line#*$'\t'}"
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
# A shell that loads this file at the first completion wants that answered, too.
if [[ ${funcstack[1]} == _sweep ]]; then _sweep "$@"
elif (( $+functions[compdef] )); then compdef _sweep sweep; fi
)script";

constexpr const char* kFish = R"script(function __sweep_complete
  set -l words (commandline -opc)
  set -l word (commandline -ct)
  for line in ($words[1] complete -- $words[2..-1] "$word" 2>/dev/null)
    if string match -q ':files*' -- $line
      set -l lead (string replace -r '^:files\t' '' -- $line)
      printf '%s\n' $lead(__fish_complete_path (string sub -s (math 1 + (string length -- "$lead")) -- "$word"))
    else
      echo $line
    end
  end
end
complete -c sweep -f -a '(__sweep_complete)'
)script";

// The word at the cursor, and a line on stdout for each candidate: the candidate, a tab and what it is.
struct Offers {
  std::string word;
  void add(const std::string& text, const std::string& help = "") const {
    if (text.starts_with(word) && printable_line(text) == text) std::cout << text << '\t' << help << '\n';
  }
  // After `lead`, the part of the word that is no file. Shells know best which there are.
  void add_files(const std::string& lead = "") const { std::cout << ":files\t" << lead << '\n'; }
};

// The keys below a key of sweep files, or at the top for "".
std::vector<Setting> parts_of(const std::string& key) {
  const std::optional<Setting> setting = key.empty() ? std::nullopt : setting_at(key_path(key));
  if (!key.empty() && !setting) return {};
  const std::span<const Setting> table = key.empty() ? top_level_settings() : setting->table();
  return {table.begin(), table.end()};
}

// The values that a key of sweep files has by name.
std::vector<std::string> values_of(const std::string& key) {
  const std::optional<Setting> setting = setting_at(key_path(key));
  if (!setting) return {};
  if (setting->kind == ArgumentKind::kBoolean) return {"true", "false"};
  if (key == "dataset") return {known_dataset_names().begin(), known_dataset_names().end()};
  if (key == "device") return {"auto", "cpu", "cuda"};
  return setting->choices.empty() ? type_names(setting->types) : setting->choices;
}

// Keys of sweep files, and their values: "device=", "optimizer.", "optimizer=adam,sgd".
void add_keys(const Offers& offers) {
  const std::string& word = offers.word;
  if (const std::size_t equals = word.find('='); equals != std::string::npos) {
    const std::string before = word.substr(0, word.find_last_of("=,") + 1);
    const std::vector<std::string> values = values_of(word.substr(0, equals));
    for (const std::string& value : values) offers.add(before + value);
    if (values.empty()) offers.add_files(word.substr(0, equals + 1));
    return;
  }
  const std::string before = word.substr(0, word.rfind('.') + 1);  // npos + 1 is 0.
  for (const Setting& part : parts_of(before.substr(0, before.size() - !before.empty()))) {
    if (!part.is_shown) continue;
    offers.add(before + part.name + "=", part.help);
    if (!parts_of(before + part.name).empty()) offers.add(before + part.name + ".");
  }
}

// What the type that the parser shows for an option tells: keys, files, or choices "{a,b}".
void add_values(const CLI::Option& option, const Offers& offers, const std::string& before = "") {
  const std::string type = option.get_type_name();
  if (type == "KEY=VALUE") return add_keys(offers);
  if (type == "DEVICE")
    for (const std::string& device : values_of("device")) offers.add(before + device);
  for (const char* file : {"DIR", "FILE", "FOLDER", "PATH", "RUN", ".json"})
    if (type.find(file) != std::string::npos) return offers.add_files(before);
  const std::size_t begin = type.find('{'), end = type.find('}');
  if (begin == std::string::npos) return;
  for (const std::string& choice : CLI::detail::split(type.substr(begin + 1, end - begin - 1), ','))
    offers.add(before + choice);
}

// Throws CLI::OptionNotFound if the command has no such option.
const CLI::Option& option_of(const CLI::App& command, const std::string& word) {
  return *command.get_option(word.substr(0, word.find('=')));
}

bool is_option(const std::string& word) { return word.starts_with("-"); }

// Whether the word is an option whose value is the next word.
bool takes_next(const CLI::App& command, const std::string& word) {
  return is_option(word) && word.find('=') == std::string::npos &&
         option_of(command, word).get_items_expected_max() > 0;
}

// `words`: the command line up to the cursor, without the program. A first word that is no command is a file.
void complete(const CLI::App& app, const Words& words) {
  const Offers offers{words.back()};
  if (std::find(words.begin(), words.end() - 1, "--") != words.end() - 1) return offers.add_files();
  const auto commands = app.get_subcommands(nullptr);
  const auto named = std::ranges::find(commands, words[0], [](const CLI::App* c) { return c->get_name(); });
  const bool is_named = words.size() > 1 && named != commands.end();
  const CLI::App& command = is_named ? **named : *app.get_subcommand(kDefaultCommand);
  std::size_t position = 0;  // among the positionals
  for (std::size_t i = is_named ? 1 : 0; i + 1 < words.size(); ++i) {
    if (!takes_next(command, words[i]))
      position += is_option(words[i]) ? 0 : 1;
    else if (++i + 1 == words.size())
      return add_values(option_of(command, words[i - 1]), offers);
  }
  if (const std::size_t equals = offers.word.find('='); is_option(offers.word)) {
    if (equals != std::string::npos)
      return add_values(option_of(command, offers.word), offers, offers.word.substr(0, equals + 1));
    for (const std::string& name : long_options(command))
      offers.add(name, command.get_option(name)->get_description());
  } else if (words.size() == 1 || (words.size() == 2 && words[0] == "help")) {
    for (const CLI::App* each : commands) {
      if (!each->get_group().empty()) offers.add(each->get_name(), each->get_description());
    }
    if (words.size() == 1) offers.add_files();
  } else {
    const auto positionals = command.get_options([](const CLI::Option* o) { return o->get_positional(); });
    if (command.get_name() == "data" && position == 1 && words[1] == "get")
      for (const std::string& name : known_dataset_names()) offers.add(name);
    else if (!positionals.empty())
      add_values(*positionals[std::min(position, positionals.size() - 1)], offers);
  }
}

int print_script(const std::string& shell) {
  std::cout << (shell == "bash" ? kBash : shell == "zsh" ? kZsh : kFish);
  return kExitDone;
}

}  // namespace

Command completion_command() {
  return {.name = "completion",
          .description = "print a completion script for a shell",
          .missing_argument = "a shell is needed: sweep completion bash|zsh|fish",
          .add_to = command_with<std::string>(print_script, [](CLI::App& app, std::string& shell) {
            app.add_option("shell", shell, "whose script it is")
                ->check(one_of({"bash", "zsh", "fish"}))
                ->required();
          })};
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
