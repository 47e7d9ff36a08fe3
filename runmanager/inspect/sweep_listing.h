// Finds the sweeps in a log directory.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runmanager/records/results.h"

namespace sweep {

/// Two levels of folders below a log directory, and no deeper: the given directory may be "/".
inline constexpr int kMaxFolderLevels = 3;

struct ListedSweep {
  std::string path;  // below the log directory
  std::size_t runs = 0;
  std::map<RunStatus, std::size_t> statuses;  // how many runs have each; without those that none has
  bool is_running = false;                    // a process holds the directory
  std::string best;                           // name of the best run by goals_of(); empty: none
  std::optional<double> best_accuracy;        // of it: in the validation, else in training; none for numbers
  std::string started, ended;  // UTC: of its first run to start and its last to end; "" if none has
  std::string problem;         // why its runs cannot be read; empty otherwise
};

/// The sweep in `directory`, listed as `path`.
ListedSweep list_sweep(const std::filesystem::path& directory, const std::string& path);

/// The sweeps in `logdir` and in folders of it, sorted by path. Whatever else lies there is passed over; a
/// sweep that cannot be read is listed with the problem. Throws DataError if `logdir` is no directory.
std::vector<ListedSweep> list_sweeps(const std::filesystem::path& logdir);

}  // namespace sweep
