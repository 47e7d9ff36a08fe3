// Reads a sweep file: from JSON and command line to a checked list of runs. The keys themselves are in
// settings/top_level_settings.cpp.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "runmanager/config/run_config.h"
#include "runmanager/sweepfile/load_options.h"

namespace sweep {

/// In the place of a sweep file: it is read from standard input. Paths in it are relative to the working
/// directory, and it has to have a "name".
inline constexpr const char* kStandardInput = "-";

/// Reads `file` and every network file it names, applies `overrides` ("lr=0.1,0.01"), expands all
/// combinations and checks every value. Throws ConfigError whose text lists every mistake found, one per
/// line, as
///   FILE:LINE:COLUMN: key.path: what was found, what is allowed, did you mean "…"?
/// and DataError if a file cannot be read. Reads no data: sizes that known_data_sizes() gives are checked
/// here, those of other data sets by check_against_data().
Sweep load_sweep(const std::filesystem::path& file, std::span<const std::string> overrides = {},
                 const LoadOptions& options = {});

/// The sweep of a person's own program without a file: `command` as "command" of a file has it, and the
/// parameters from `overrides`. It works in the current directory. Throws ConfigError as load_sweep().
Sweep make_command_sweep(const std::string& name, std::span<const std::string> command,
                         std::span<const std::string> overrides, const LoadOptions& options = {});

}  // namespace sweep
