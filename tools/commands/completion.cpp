// `sweep completion`: prints a script that completes this command line in a shell. It is made from the
// commands and options of the parser, so new ones are completed, too.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "core/base/error.h"
#include "core/spec/arguments.h"
#include "runmanager/config/problems.h"
#include "tools/commands.h"
#include "tools/exit_code.h"

namespace sweep {
namespace {

std::vector<const CLI::App*> commands_of(const CLI::App& app) { return app.get_subcommands(nullptr); }

std::string joined_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : commands_of(app)) names.push_back(command->get_name());
  return fmt::format("{}", fmt::join(names, " "));
}

// zsh runs this as well, through bashcompinit. A first word that is no command is a sweep file, so the
// options are those of the default command.
std::string bash_script(const CLI::App& app) {
  std::string cases;
  for (const CLI::App* command : commands_of(app)) {
    if (command->get_name() == kDefaultCommand) continue;
    cases += fmt::format("    {}) options=\"{}\" ;;\n", command->get_name(),
                         fmt::join(long_options(*command), " "));
  }
  return fmt::format(R"(_sweep() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} options
  case ${{COMP_WORDS[1]}} in
{}    *) options="{}" ;;
  esac
  if [[ $previous == completion && $COMP_CWORD == 2 ]]; then
    COMPREPLY=($(compgen -W "bash zsh fish" -- "$word"))
  elif [[ $word == -* ]]; then
    [[ $COMP_CWORD == 1 ]] && options="$options --version"
    COMPREPLY=($(compgen -W "$options" -- "$word"))
  elif [[ $COMP_CWORD == 1 ]]; then
    COMPREPLY=($(compgen -W "{}" -- "$word") $(compgen -f -- "$word"))
  else
    COMPREPLY=($(compgen -f -- "$word"))
  fi
}}
complete -o filenames -F _sweep sweep
)",
                     cases, fmt::join(long_options(*app.get_subcommand(kDefaultCommand)), " "),
                     joined_names(app));
}

// Escapes `text` for fish's single quotes.
std::string fish_escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) escaped += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return escaped;
}

std::string fish_script(const CLI::App& app) {
  std::string script;
  for (const CLI::App* command : commands_of(app)) {
    script += fmt::format("complete -c sweep -n __fish_use_subcommand -a {} -d '{}'\n", command->get_name(),
                          fish_escaped(command->get_description()));
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        script += fmt::format("complete -c sweep -n '__fish_seen_subcommand_from {}' -l {} -d '{}'\n",
                              command->get_name(), name, fish_escaped(option->get_description()));
      }
    }
  }
  return script + "complete -c sweep -n '__fish_seen_subcommand_from completion' -f -a 'bash zsh fish'\n";
}

std::string completion_script(const CLI::App& app, const std::string& shell) {
  if (shell == "bash") return bash_script(app);
  if (shell == "zsh") return "autoload -U +X bashcompinit && bashcompinit\n" + bash_script(app);
  if (shell == "fish") return fish_script(app);
  const std::string shells[] = {"bash", "zsh", "fish"};
  throw ConfigError(
      fmt::format("completion: got \"{}\", want {}{}", shell, listed(shells), suggestion(shell, shells)));
}

}  // namespace

Command completion_command() {
  return {.name = "completion",
          .description = "print a completion script for a shell",
          .missing_argument = "a shell is needed: sweep completion bash|zsh|fish",
          .add_to = [](CLI::App& app) -> CommandAction {
            auto shell = std::make_shared<std::string>();
            app.add_option("shell", *shell, "bash, zsh or fish")->required();
            return [shell, &app](const auto&) {
              std::cout << completion_script(*app.get_parent(), *shell);
              return kExitDone;
            };
          }};
}

}  // namespace sweep
