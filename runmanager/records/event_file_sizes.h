// The sizes of a run's events files, by which a start after a power cut finds out whether they are complete.
// That they consist of whole records is not enough: a file whose last records never reached the disk does,
// too.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "runmanager/records/results.h"

namespace sweep {

/// Bytes of every events file in `run_directory`, by name. Throws IoError.
std::map<std::string, std::uint64_t> event_file_sizes(const std::filesystem::path& run_directory);

/// What is wrong with the sizes of the files that `record` names, such as "FILE is missing"; "" if nothing
/// is. Other files may be there as well.
std::string event_file_problem(const std::filesystem::path& run_directory, const RunRecord& record);

}  // namespace sweep
