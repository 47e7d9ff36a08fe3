// What each command does.
#pragma once

#include "tools/command_line.h"

namespace sweep {

/// Trains the runs of a sweep file. Returns the sweep's exit code.
int run_command(const CommandLine& line);
/// Prints what run_command() would do.
int plan_command(const CommandLine& line);
/// Prints the results table of a sweep's directory, or the record of one run's.
int show_command(const CommandLine& line);
/// Prints what is wrong with the files of a directory. Returns kExitFailed if anything is.
int fsck_command(const CommandLine& line);
/// Trains finished runs again and prints whether every bit is the same.
int verify_command(const CommandLine& line);
/// Prints or writes the scalars and hyperparameters of a log directory. Returns kExitFailed if some of it
/// could not be read.
int export_command(const CommandLine& line);
/// Prints the devices of this machine, and why CUDA is off if it is.
int devices_command(const CommandLine& line);
/// Prints the JSON schema of sweep files.
int schema_command(const CommandLine& line);

}  // namespace sweep
