// Checks the files of a sweep for damage: checksums of events, checkpoints, run.json, results.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runmanager/inspect/file_checks.h"

namespace sweep {

struct FsckReport {
  std::filesystem::path directory;
  std::vector<FileFinding> files;  // by path

  std::size_t damaged() const;  // number of damaged files
  std::uint64_t bytes() const;  // size of all files
};

/// Checks every file below `directory`: the directory of a sweep or a run, or any log directory above these,
/// also one that other programs wrote. Only reads. Damage is in the report; throws DataError only if there is
/// no such directory or nothing to check in it. The values of a checkpoint have no checksum, so only their
/// shapes and counts are checked.
FsckReport check_directory(const std::filesystem::path& directory);

/// A line per file that has problems or notes, with these below it, and a summary line. With `all`, files
/// without problems and notes also have a line.
std::string fsck_text(const FsckReport& report, bool all = false);
/// {"directory", "ok", "damaged", "bytes", "files": [{"path", "state": "ok" | "note" | "damaged", "bytes",
/// "records", "problems", "notes"}]}; "records" only for events files.
nlohmann::ordered_json fsck_json(const FsckReport& report);

}  // namespace sweep
