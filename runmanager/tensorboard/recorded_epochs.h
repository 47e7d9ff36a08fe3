// Finds out which epochs the events of a run show; a power cut may have removed some.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>

namespace sweep {

/// The steps of the epochs that RunLog::epoch() has written to the events files in `directory`. Reads each
/// file up to its first damage. Throws DataError if a file cannot be read.
std::set<std::int64_t> recorded_epochs(const std::filesystem::path& directory);

/// Removes all events files in `directory`. Throws IoError.
void remove_events(const std::filesystem::path& directory);

}  // namespace sweep
