// Directories of runs that are trained again with other settings, or that have another name now; and what
// earlier versions left in them.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "runmanager/config/run_config.h"
#include "runmanager/records/earlier_starts/existing_runs.h"
#include "runmanager/records/results.h"

namespace sweep {

/// Whether `name` is one that make_room() gives to a run that is set aside: "lr=0.1.replaced-1".
bool is_replaced_name(std::string_view name);

/// Whether the run has a directory set aside, by this start or an earlier one.
bool has_run_set_aside(const std::filesystem::path& sweep_directory, const std::string& run);

/// Removes all directories that make_room() has set aside for this run; for when the new one has finished.
/// Throws IoError.
void remove_runs_set_aside(const std::filesystem::path& sweep_directory, const std::string& run);

/// Prepares the sweep's directory for what is decided about its runs: sets those aside that are in the way,
/// as <run>.replaced-N with the first N that is free, so that at every moment either the old or the new one
/// is whole; renames those that are adopted, and removes what was set aside for runs that have finished
/// since. Every step can be repeated after a crash. `existing` has an entry for each of `runs`; records of
/// adopted runs are changed. Throws IoError.
void make_room(const std::filesystem::path& sweep_directory, std::span<const RunConfig> runs,
               std::span<ExistingRun> existing);

/// Gives checkpoints their usual names: earlier versions put the attempt into them until the run had ended,
/// "checkpoint.3f2a9c01d2e4b6a8-2.safetensors". Of several attempts the one counts that has written last.
/// Then removes the folder ".claims", which told who worked on what. A symbolic link of that name stays. For
/// when no other process works on the sweep. Throws IoError.
void adopt_attempts(const std::filesystem::path& sweep_directory);

}  // namespace sweep
