// `sweep fsck`: what is damaged in a directory, and what is lost.
#include "runmanager/inspect/fsck.h"

#include <iostream>

#include "runmanager/records/run_files.h"
#include "tools/commands.h"
#include "tools/exit_code.h"

namespace sweep {

int fsck_command(const CommandLine& line) {
  const FsckReport report = check_directory(line.file);
  std::cout << (line.json ? json_text(fsck_json(report)) : fsck_text(report));
  return report.damaged() == 0 ? kExitDone : kExitFailed;
}

}  // namespace sweep
