// `sweep schema`: prints the JSON schema of sweep files.
#include "runmanager/sweepfile/sweep_file.h"

#include "tools/output.h"

namespace sweep {

Command schema_command() {
  return {.name = "schema",
          .description = "print the JSON schema of sweep files",
          .add_to = [](CLI::App&) -> CommandAction {
            return [](const auto&) {
              print_json(sweep_schema());
              return kExitDone;
            };
          }};
}

}  // namespace sweep
