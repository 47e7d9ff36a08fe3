// `sweep fsck`: checks the files of a directory for damage, and says what is lost.
#include "runmanager/inspect/fsck.h"

#include "core/base/printable.h"
#include "tools/output.h"

namespace sweep {
namespace {

struct FsckOptions {
  std::filesystem::path directory;
  bool json = false;
  bool verbose = false;  // also files in which nothing was found
};

int check(const FsckOptions& options) {
  const FsckReport report = check_directory(options.directory);
  if (options.json) {
    print_json(fsck_json(report));
  } else {
    std::cout << printable(fsck_text(report, options.verbose));
  }
  return report.damaged() == 0 ? kExitDone : kExitFailed;
}

}  // namespace

Command fsck_command() {
  return {.name = "fsck",
          .description = "check every file of a sweep, run or log directory for damage",
          .missing_argument = "a directory is needed: sweep fsck runs/NAME",
          .add_to = command_with<FsckOptions>(check, [](CLI::App& app, FsckOptions& options) {
            add_value(app, "directory DIR", options.directory, "runs/NAME, a directory in it, or one above")
                ->required();
            app.add_flag("--verbose", options.verbose, "also name the files without findings");
            app.add_flag("--json", options.json, "as JSON");
            app.footer("Exit codes: 0 no damage, 1 damage, 2 no such directory or nothing in it to check.");
          })};
}

}  // namespace sweep
