// `sweep resume DIR`: goes on with a sweep from what it has left, without its sweep file.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "core/base/error.h"
#include "runmanager/sweepfile/sweep_file.h"
#include "tools/commands.h"
#include "tools/commands/run_options.h"
#include "tools/commands/train.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

struct ResumeOptions {
  fs::path directory;
  RunnerOptions runner;
};

// Without a slash at the end, and with a name: "." has none.
fs::path named_directory(fs::path directory) {
  if (directory.filename().empty()) directory = directory.parent_path();
  const bool has_name =
      !directory.filename().empty() && directory.filename() != "." && directory.filename() != "..";
  return has_name ? directory : fs::weakly_canonical(directory);
}

int resume(ResumeOptions& options, const std::vector<std::string>& typed) {
  const fs::path directory = named_directory(options.directory), file = directory / "sweep.json";
  std::error_code error;
  if (!fs::exists(file, error)) {
    throw DataError(fmt::format("{}: {}; want the directory of a sweep, with sweep.json in it",
                                options.directory.string(),
                                fs::exists(directory, error) ? "has no sweep.json" : "is not there"));
  }
  // The directory may be called otherwise than the sweep: --fresh makes NAME-2.
  const std::string name = "name=" + directory.filename().string();
  const Sweep sweep = load_sweep(file, std::span(&name, 1));
  options.runner.logdir = directory.has_parent_path() ? directory.parent_path() : ".";
  options.runner.command = typed;
  return train_sweep(sweep, options.runner);
}

}  // namespace

Command resume_command() {
  return {.name = "resume",
          .description = "go on with the sweep in a directory, without its sweep file",
          .missing_argument = "a directory is needed: sweep resume runs/NAME [options]",
          .add_to = [](CLI::App& app) -> CommandAction {
            auto options = std::make_shared<ResumeOptions>();
            app.add_option("directory", options->directory, "runs/NAME")->type_name("DIR")->required();
            add_training_options(app, options->runner);
            return [options](const std::vector<std::string>& typed) { return resume(*options, typed); };
          }};
}

}  // namespace sweep
