// `sweep export`: writes the scalars and hyperparameters of a log directory for other programs.
#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/printable.h"
#include "runmanager/inspect/event_export.h"
#include "tools/output.h"

namespace sweep {
namespace {

struct ExportOptions {
  std::filesystem::path logdir;
  std::vector<std::string> tags;  // regular expressions
  std::string format;             // "csv", "json" or "markdown"; empty: chosen by the extension of `output`
  std::filesystem::path output;   // empty: stdout
};

std::string format_of(const ExportOptions& options) {
  if (!options.format.empty()) return options.format;
  if (options.output.empty()) return "csv";
  const std::string extension = options.output.extension().string();
  for (const auto& [known, format] : {std::pair(".csv", "csv"), {".json", "json"}, {".md", "markdown"}}) {
    if (extension == known) return format;
  }
  throw ConfigError(fmt::format("-o {}: the ending names no format, want .csv, .json or .md, or --format",
                                options.output.string()));
}

int export_logdir(const ExportOptions& options) {
  const std::string format = format_of(options);
  const ExportedLogdir logdir = read_logdir(options.logdir, options.tags);
  const std::string text = format == "json"       ? export_json(logdir)
                           : format == "markdown" ? export_markdown(logdir)
                                                  : export_csv(logdir);
  if (options.output.empty()) {
    // Another program gets the bytes as they are.
    std::cout << (::isatty(STDOUT_FILENO) != 0 ? printable(text) : text);
  } else {
    write_file_atomically(options.output, text);
  }
  for (const std::string& damage : logdir.damage) std::cerr << "sweep: " << printable(damage) << '\n';
  return logdir.damage.empty() ? kExitDone : kExitFailed;
}

}  // namespace

Command export_command() {
  return {
      .name = "export",
      .description =
          "scalars and hyperparameters of a log directory, of any program, as CSV, JSON or Markdown",
      .missing_argument = "a log directory is needed: sweep export LOGDIR",
      .add_to = command_with<ExportOptions>(export_logdir, [](CLI::App& app, ExportOptions& options) {
        add_value(app, "logdir LOGDIR", options.logdir, "a directory with events files in it or below")
            ->required();
        app.add_option(
               "--format", options.format,
               "csv: a row per point; json; markdown: a row per run with last values; default: as FILE "
               "ends, else csv")
            ->check(one_of({"csv", "json", "markdown"}));
        add_value(app, "-o,--output FILE", options.output, "instead of standard output");
        add_value(app, "--tag REGEX", options.tags,
                  "only scalars whose tag begins with this, a regular expression; may be given again")
            ->allow_extra_args(false);  // Otherwise the log directory after it would be another tag.
        app.footer(
            "Exit codes: 0 everything exported, 1 all but what is damaged, 2 no such directory, events file "
            "or tag,\n3 FILE cannot be written.");
      })};
}

}  // namespace sweep
