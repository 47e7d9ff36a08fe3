// `sweep verify`: finished runs once more, and whether every bit is the same.
#include "runmanager/inspect/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "tools/commands.h"
#include "tools/exit_code.h"

namespace sweep {

int verify_command(const CommandLine& line) {
  SweepEnvironment environment;
  environment.worker_command = {"/proc/self/exe", "worker"};
  const VerifyReport report =
      verify_sweep({.directory = line.file,
                    .runs = line.verify_runs,
                    .threads = line.runner.threads,
                    .on_run = [](const VerifiedRun& run) { std::cout << verified_text(run) << std::endl; }},
                   environment);
  const auto trained = std::count_if(report.runs.begin(), report.runs.end(),
                                     [](const VerifiedRun& run) { return run.not_compared.empty(); });
  std::cout << fmt::format("{} of {} finished run{} trained again\n", trained, report.finished,
                           report.finished == 1 ? "" : "s");
  return report.exit_code;
}

}  // namespace sweep
