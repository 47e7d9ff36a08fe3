// `sweep import`: adopts what other programs have logged as a finished sweep.
#include <fmt/format.h>

#include "core/base/printable.h"
#include "core/base/text.h"
#include "runmanager/import/import_sweep.h"
#include "runmanager/records/provenance.h"
#include "tools/output.h"

namespace sweep {
namespace {

int import_directory(const ImportOptions& given) {
  ImportOptions options = given;
  options.command = {"sweep", "import", options.source.string()};
  const ImportedSweep imported = import_sweep(options);
  for (const std::string& remark : imported.remarks) std::cerr << "sweep: " << printable(remark) << '\n';
  std::cout << printable(fmt::format("{} in {}\nTo look at them: {}\n", counted(imported.runs, "run"),
                                     shell_command({imported.directory.string()}),
                                     shell_command({typed_program(), "show"}, imported.directory)));
  return kExitDone;
}

}  // namespace

Command import_command() {
  return {.name = "import",
          .description = "adopt the events of other programs as a finished sweep",
          .missing_argument = "a directory is needed: sweep import DIR",
          .add_to = command_with<ImportOptions>(import_directory, [](CLI::App& app, ImportOptions& options) {
            options.logdir = "runs";
            add_value(app, "directory DIR", options.source,
                      "a directory with events files of PyTorch, Lightning, Keras or W&B in it or below")
                ->required();
            add_value(app, "--name NAME", options.name, "of the sweep; default: that of DIR");
            add_value(app, "--logdir DIR", options.logdir, "where its directory is made; default: runs");
            app.footer(
                "Parameters are those of the hparams plugin, of hparams.yaml or config.yaml, or of names "
                "such as\n"
                "\"lr=0.1 batch_size=100\". Nothing in DIR is changed.\n"
                "Exit codes: 0 done, 2 no events there or the sweep is there already, 3 cannot be written.");
          })};
}

}  // namespace sweep
