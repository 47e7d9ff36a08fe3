// The files of one run's directory: their names, and how one that was used before is cleared.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace sweep {

inline constexpr const char* kRunRecordFile = "run.json";
inline constexpr const char* kCheckpointFile = "checkpoint.safetensors";
inline constexpr const char* kLogFile = "log.txt";
/// In the sweep's directory: the file as expanded; results.csv and results.json.
inline constexpr const char* kSweepFile = "sweep.json";
inline constexpr const char* kResults = "results";

/// Makes `directory` with its parents and removes what an earlier start of the run left there: events files,
/// run.json, checkpoint and log. Anything else stays. Throws IoError.
void prepare_run_directory(const std::filesystem::path& directory);

/// Removes what writers that were killed have left of files that they were about to replace. Throws IoError.
void remove_temporaries(const std::filesystem::path& directory);

/// Whether the directory holds an events file.
bool has_events(const std::filesystem::path& directory);

/// JSON as the files have it: indented, a line break at the end, text that is not UTF-8 with replacement
/// characters.
std::string json_text(const nlohmann::ordered_json& json);
/// The same on one line, without a line break.
std::string compact_json_text(const nlohmann::ordered_json& json);

}  // namespace sweep
