// `sweep completion`: prints a script that completes this command line in a shell.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "tools/commands.h"
#include "tools/exit_code.h"

namespace sweep {
namespace {

// Each asks `sweep complete` what the line can go on with, so that commands, options, keys and choices have
// one place. A word that ends with "=", "." or "/" goes on, so no blank follows it.

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

}  // namespace sweep
