// `sweep export`: scalars and hyperparameters of a log directory, for other programs.
#include <iostream>

#include "core/base/file.h"
#include "runmanager/inspect/event_export.h"
#include "tools/commands.h"
#include "tools/exit_code.h"

namespace sweep {
namespace {

std::string format_of(const CommandLine& line) {
  if (!line.format.empty()) return line.format;
  const std::string extension = line.output.extension().string();
  if (extension == ".json") return "json";
  return extension == ".md" ? "markdown" : "csv";
}

}  // namespace

int export_command(const CommandLine& line) {
  const ExportedLogdir logdir = read_logdir(line.file, line.tags);
  const std::string format = format_of(line);
  const std::string text = format == "json"       ? export_json(logdir)
                           : format == "markdown" ? export_markdown(logdir)
                                                  : export_csv(logdir);
  if (line.output.empty()) {
    std::cout << text;
  } else {
    write_file_atomically(line.output, text);
  }
  for (const std::string& damage : logdir.damage) std::cerr << "sweep: " << damage << '\n';
  return logdir.damage.empty() ? kExitDone : kExitFailed;
}

}  // namespace sweep
