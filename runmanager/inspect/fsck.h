// Checks what a sweep has left on disk: every record's checksum, checkpoints, records of runs, results.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace sweep {

/// What was found about one file. Texts are for people.
struct FileFinding {
  std::string path = {};                      // relative to the directory that was checked
  std::vector<std::string> problems = {};     // damage: what is wrong, where, and what is lost
  std::vector<std::string> notes = {};        // worth knowing, no damage: the torn tail of an unfinished run
  std::optional<std::uint64_t> records = {};  // of an events file: those that can be read
  std::uint64_t bytes = 0;                    // read

  bool damaged() const { return !problems.empty(); }
};

struct FsckReport {
  std::filesystem::path directory;
  std::vector<FileFinding> files;  // by path

  std::size_t damaged() const;  // files
  std::uint64_t bytes() const;  // of all files
};

/// Checks the directory of a sweep or of a run, or a log directory with any of these below it, also ones that
/// other programs wrote. Only reads. Throws DataError if there is no such directory, or nothing in it to
/// check; what is wrong with a file is in the report. A checkpoint's values have no checksum: of these only
/// shape and number can be checked.
FsckReport check_directory(const std::filesystem::path& directory);

/// One line per file, with lines below it for what is wrong, and a summary.
std::string fsck_text(const FsckReport& report);
/// {"directory", "ok", "damaged", "bytes", "files": [{"path", "state": "ok" | "note" | "damaged", "bytes",
/// "records", "problems", "notes"}]}; "records" only of events files.
nlohmann::ordered_json fsck_json(const FsckReport& report);

}  // namespace sweep
