// The names of the files in the directories of a sweep and its runs, and how old ones are removed.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace sweep {

inline constexpr const char* kRunRecordFile = "run.json";
inline constexpr const char* kCheckpointFile = "checkpoint.safetensors";
inline constexpr const char* kLogFile = "log.txt";
/// In the sweep's directory: the expanded sweep file.
inline constexpr const char* kSweepFile = "sweep.json";
/// In the sweep's directory: results.csv and results.json, without the extension.
inline constexpr const char* kResults = "results";

/// Makes `directory` and its parents, and removes the files that an earlier start of the run left there:
/// events, run.json, checkpoint and log. Other files stay. Throws IoError.
void prepare_run_directory(const std::filesystem::path& directory);

/// Removes the temporary files of write_file_atomically() that killed processes have left. Throws IoError.
void remove_temporaries(const std::filesystem::path& directory);

/// Whether the directory holds an events file.
bool has_events(const std::filesystem::path& directory);

/// JSON for a file: indented, with a line break at the end. Bytes that are not UTF-8 become replacement
/// characters.
std::string json_text(const nlohmann::ordered_json& json);
/// The same on one line, without a line break.
std::string compact_json_text(const nlohmann::ordered_json& json);

}  // namespace sweep
