// Checks that sweep.json, results.json, results.csv and the run.json of every run agree.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runmanager/inspect/file_finding.h"
#include "runmanager/records/results.h"

namespace sweep {

/// Records by the run's name, relative to the checked directory; "." is that directory itself. nullopt for a
/// run.json that cannot be read.
using RecordsByName = std::map<std::string, std::optional<RunRecord>>;

/// Compares the three files of the sweep in `directory` with each other and with `records`. Returns a
/// finding, with a path relative to `directory`, for each file that exists or should exist and for each
/// missing run.json.
std::vector<FileFinding> check_results(const std::filesystem::path& directory, const RecordsByName& records);

}  // namespace sweep
