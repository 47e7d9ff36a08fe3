// Makes room for runs that are trained again with other settings, or that have another name now, and says
// what has changed since the last start; and what earlier versions left.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

/// Sentences about runs that are new, renamed, continued, replaced, or no longer in the file. `directory` is
/// the sweep's, as the last start has left it; `existing` has an entry for each of `runs`. Empty if nothing
/// has changed.
std::vector<std::string> changes_since(const std::filesystem::path& directory,
                                       std::span<const RunConfig> runs,
                                       std::span<const ExistingRun> existing);

/// The names of the last start's runs; nothing if there was none.
std::optional<std::vector<std::string>> runs_of_sweep_file(const std::filesystem::path& directory);

/// For a search that has chosen all of its trials, `runs`: which of `earlier` are none of them; "" if all
/// are.
std::string trials_left_out_text(const std::vector<std::string>& earlier, std::span<const RunConfig> runs);

/// The first three of `names`, and how many more there are: "a; b; c and 4 more".
std::string first_names(const std::vector<std::string>& names);

}  // namespace sweep
