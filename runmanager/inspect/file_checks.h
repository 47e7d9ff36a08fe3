// The checks of single files, for fsck.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
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

/// `message` without the "PATH: " that error messages begin with; a finding has the path already.
inline std::string without_path(std::string message, const std::filesystem::path& path) {
  if (message.starts_with(path.string() + ": ")) message.erase(0, path.string().size() + 2);
  return message;
}

/// Checks the checkpoint at `path` and adds problems and notes to `finding`. `record` is the run's, or null
/// if it cannot be read; then the network is not checked. Returns its last epoch, if it can be read and says.
std::optional<int> check_checkpoint(const std::filesystem::path& path, const RunRecord* record,
                                    FileFinding& finding);

/// Records by the run's name, relative to the checked directory; "." is that directory itself. nullopt for a
/// run.json that cannot be read.
using RecordsByName = std::map<std::string, std::optional<RunRecord>>;

/// Compares the three files of the sweep in `directory` with each other and with `records`. Returns a
/// finding, with a path relative to `directory`, for each file that exists or should exist and for each
/// missing run.json.
std::vector<FileFinding> check_results(const std::filesystem::path& directory, const RecordsByName& records);

}  // namespace sweep
