// Checks the files of a sweep for damage: checksums of events, checkpoints, run.json, results.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runmanager/records/results.h"

namespace sweep {

/// What was found in one file. The texts are messages for the user.
struct FileFinding {
  std::string path = {};                   // relative to the directory that is checked
  std::vector<std::string> problems = {};  // damage: what is wrong, where, and what is lost
  std::vector<std::string> notes = {};  // no damage, but worth knowing, as a torn last record of a killed run
  std::optional<std::uint64_t> records = {};  // of an events file: the number that can be read
  std::uint64_t bytes = 0;                    // size of the file

  bool damaged() const { return !problems.empty(); }
};

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

/// Records by the run's name, relative to the checked directory; "." is that directory itself. nullopt for a
/// run.json that cannot be read.
using RecordsByName = std::map<std::string, std::optional<RunRecord>>;

/// The text of a file, or why it cannot be read.
struct ResultFile {
  std::string text, problem;
};
/// sweep.json, results.json and results.csv, by their names: those that are there.
using ResultFiles = std::map<std::string, ResultFile>;

/// Reads those of `directory`. If the sweep goes on, its records have to be read later: a record may be newer
/// than the results, but not older.
ResultFiles read_result_files(const std::filesystem::path& directory);

/// Compares `files`, those of the sweep in `directory`, with each other and with `records`. Returns a
/// finding, with a path relative to `directory`, for each file that exists or should exist and for each
/// missing run.json.
std::vector<FileFinding> check_results(const std::filesystem::path& directory, const ResultFiles& files,
                                       const RecordsByName& records);

}  // namespace sweep
