// `sweep manual`: prints the manual page, made from the parser's commands and options.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "runmanager/records/provenance.h"
#include "tools/commands.h"
#include "tools/exit_code.h"

namespace sweep {
namespace {

// `text` as troff shows it unchanged: man(7), "Special characters".
std::string escaped(std::string_view text) {
  std::string safe;
  for (std::size_t i = 0; i < text.size(); ++i) {
    constexpr std::string_view kEllipsis = "…";
    const char c = text[i];
    if (text.substr(i).starts_with(kEllipsis)) {  // Not all of troff's devices know it.
      safe += "...";
      i += kEllipsis.size() - 1;
    } else if (c == '\\') {
      safe += "\\e";
    } else if (c == '-') {
      safe += "\\-";
    } else if ((c == '.' || c == '\'') && (safe.empty() || safe.back() == '\n')) {
      safe += "\\&";
      safe += c;
    } else {
      safe += c;
    }
  }
  return safe;
}

std::string bold(std::string_view text) { return "\\fB" + escaped(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + escaped(text) + "\\fR"; }

std::string option_entry(const CLI::Option& option) {
  std::string names;
  for (const std::string& name : option.get_snames()) names += (names.empty() ? "" : ", ") + bold("-" + name);
  for (const std::string& name : option.get_lnames())
    names += (names.empty() ? "" : ", ") + bold("--" + name);
  if (option.get_items_expected_max() > 0) names += " " + italic(option.get_type_name());
  std::string text = option.get_description();
  if (!option.get_default_str().empty()) text += fmt::format(" (default {})", option.get_default_str());
  return fmt::format(".TP\n{}\n{}\n", names, escaped(text));
}

std::string command_section(const CLI::App& command) {
  std::string usage = "sweep " + command.get_name();
  std::string options;
  for (const CLI::Option* option : command.get_options()) {
    if (option == command.get_help_ptr()) continue;
    if (!option->get_positional()) {
      options += option_entry(*option);
      continue;
    }
    const std::string name = option->get_type_name().empty() || option->get_type_name() == "TEXT"
                                 ? option->get_name()
                                 : option->get_type_name();
    usage += option->get_required() ? " " + name : " [" + name + "]";
    if (option->get_items_expected_max() > 1) usage += "...";
  }
  return fmt::format(".SS {}\n{}\n{}", escaped(usage), escaped(command.get_description() + "."), options);
}

std::string manual(const CLI::App& app) {
  std::string page =
      fmt::format(".TH SWEEP 1 \"\" \"sweep {}\" \"User Commands\"\n", escaped(program_version()));
  page +=
      ".SH NAME\nsweep \\- train one network per combination of hyperparameters, logged for TensorBoard\n";
  page += ".SH SYNOPSIS\n" + bold("sweep") + " " + italic("SWEEP.json") + " [" + italic("key=v1,v2,...") +
          " ...] [" + italic("options") + "]\n.br\n" + bold("sweep") + " " + italic("command") + " ...\n";
  page += ".SH COMMANDS\n";
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    if (!command->get_group().empty()) page += command_section(*command);
  }
  page += ".SH EXIT STATUS\n";
  for (const auto& [code, meaning] : exit_codes())
    page += fmt::format(".TP\n{}\n{}\n", bold(code), escaped(meaning));
  page += ".SH ENVIRONMENT\n";
  constexpr std::pair<const char*, const char*> kVariables[] = {
      {"SWEEP_DATA",
       "a folder in which data sets are looked for, before those of the system and of the user's cache"},
      {"SWEEP_DATA_MIRROR", "an address from which data sets are downloaded in the place of their own"},
      {"SWEEP_CACHE_SIZE", "0: no decoded pictures are kept in the user's cache"},
      {"XDG_CACHE_HOME", "the folder of the user's cache, ~/.cache by default"},
      {"SWEEP_BF16", "emulate: bf16 with the same bits on any CPU, slowly; off: as if the CPU had none"},
      {"SWEEP_CUDA_KERNELS",
       "measured: the fastest kernel of each layer (default); own: built-in ones; library: those of NVIDIA's "
       "libraries, wherever they can do the work"},
      {"SWEEP_CUDA_STEPS",
       "the most training steps in one CUDA graph: 1, 2, 4, 8, 16 (default), 32 or 64; changes no result"},
      {"SWEEP_CUDA_OVERLAP",
       "0: no kernel is started while the one before it still runs, as they are from compute capability 9.0 "
       "on; changes no result"},
      {"NO_COLOR", "if it is set, nothing is coloured"},
      {"TERM", "dumb: plain lines instead of the live table, and no colours"}};
  for (const auto& [name, meaning] : kVariables)
    page += fmt::format(".TP\n{}\n{}\n", bold(name), escaped(meaning));
  return page;
}

}  // namespace

Command manual_command() {
  return {.name = "manual",
          .description = "print the manual page; to read it: sweep manual | man -l -",
          .missing_argument = "",
          .add_to = [](CLI::App& app) -> CommandAction {
            return [&app](const auto&) {
              std::cout << manual(*app.get_parent());
              return kExitDone;
            };
          }};
}

}  // namespace sweep
