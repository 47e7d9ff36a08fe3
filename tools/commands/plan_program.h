// `sweep plan` for a sweep of a person's own program.
#pragma once

#include <filesystem>

#include "runmanager/config/run_config.h"

namespace sweep {

struct ProgramPlanOptions {
  std::filesystem::path logdir;
  bool fresh = false, replace = false, json = false;
};

/// Prints every run with what becomes of it and how the program would be started. Returns an exit code.
/// Throws ConfigError as the sweep itself would, DataError if an input is missing, and IoError.
int print_program_plan(const Sweep& sweep, const ProgramPlanOptions& options);

}  // namespace sweep
