// Reads a sweep file: from JSON and command line to a checked list of runs. The keys themselves are in
// settings/top_level_settings.cpp.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runmanager/config/run_config.h"

namespace sweep {

/// Options besides key=value overrides.
struct LoadOptions {
  std::optional<std::string> epochs;     // --epochs, as typed; replaces the file's and any axis of that key
  std::optional<std::string> seed;       // --seed, likewise
  std::optional<bool> deterministic;     // --deterministic or --no-deterministic, likewise
  std::vector<std::string> slurm = {};   // "KEY=VALUE" of --slurm, into "slurm"
  std::optional<int> cuda_device_count;  // CUDA devices of this machine; nothing: ask it
  /// The folder where an earlier start may have left the sweep, whose search then learns from the results of
  /// other sweeps that it began with. Empty: there is none.
  std::filesystem::path logdir = {};
};

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

/// JSON Schema, draft 2020-12, for editors and other programs. load_sweep() rejects everything that it
/// rejects; only load_sweep() checks what depends on several values or on the machine (shapes, devices,
/// files). The one exception: names of data sets that only $SWEEP_DATA has.
nlohmann::ordered_json sweep_schema();

}  // namespace sweep
