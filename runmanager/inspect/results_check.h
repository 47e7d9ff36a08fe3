// Whether sweep.json, results.json, results.csv and the records of the runs say the same.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runmanager/inspect/fsck.h"
#include "runmanager/records/results.h"

namespace sweep {

/// The records of a sweep's runs by name, "." for the directory itself; of a run whose record cannot be read,
/// nothing.
using RecordsByName = std::map<std::string, std::optional<RunRecord>>;

/// One finding for each of the three files that is there or is missing and should not be, and one for each
/// run.json that should be there. Paths are relative to `directory`.
std::vector<FileFinding> check_results(const std::filesystem::path& directory, const RecordsByName& records);

}  // namespace sweep
