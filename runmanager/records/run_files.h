// The names of the files in the directories of a sweep and its runs, and how old ones are removed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runmanager/records/results.h"

namespace sweep {

inline constexpr const char* kRunRecordFile = "run.json";
inline constexpr const char* kCheckpointFile = "checkpoint.safetensors";
/// A second name of the newest checkpoint that is known to be on disk. It is there while a run is trained for
/// longer than a few seconds, because kCheckpointFile is replaced after every epoch without waiting for the
/// disk.
inline constexpr const char* kPreviousCheckpointFile = "checkpoint.previous.safetensors";
/// The checkpoint of the best epoch: a second name of the one that was written after it.
inline constexpr const char* kBestFile = "best.safetensors";
/// The checkpoint of another run that this one continues: a second name of it.
inline constexpr const char* kStartFile = "start.safetensors";
inline constexpr const char* kLogFile = "log.txt";

/// In a sweep's directory: see SweepDirectory. In a run's: see RunLock.
inline constexpr const char* kLockFile = ".lock";

/// In the sweep's directory: the expanded sweep file.
inline constexpr const char* kSweepFile = "sweep.json";
/// In the sweep's directory while it is trained, and after it was killed: how far it is, see LiveSweep.
inline constexpr const char* kProgressFile = ".progress.json";
/// In a directory that several processes share: the digests of the data that the first of them has read.
inline constexpr const char* kInputsFile = ".inputs.json";
/// In the sweep's directory: results.csv and results.json, without the extension.
inline constexpr const char* kResults = "results";
/// In the sweep's directory: the page that `sweep report` writes.
inline constexpr const char* kReportFile = "report.html";
/// Begins the names of copies of events files that are not complete yet; they end in ".tmp".
inline constexpr const char* kEventsCopy = "copy-of-events.";

/// Throws IoError: "PATH: PROBLEM: No space left on device". `error`: an errno, or the value of a
/// std::error_code.
[[noreturn]] void throw_io(const std::filesystem::path& path, std::string_view problem, int error);

/// Returns what is in `directory`, in any order; nothing if there is no such directory. Throws IoError,
/// naming it and the reason.
std::vector<std::filesystem::directory_entry> directory_entries(const std::filesystem::path& directory);

/// Throws DataError: "runs/x: PROBLEM; want WANT", or instead of the problem that it is not there. Then it
/// suggests the directory of that name in "runs", if there is one.
[[noreturn]] void refuse_directory(const std::filesystem::path& directory, std::string_view problem,
                                   std::string_view want);
/// Throws DataError likewise unless `directory` is one.
void require_directory(const std::filesystem::path& directory, std::string_view want);

/// Throws IoError if the directory of a run is a symbolic link: removing and writing files there would change
/// a directory that is not this run's.
void check_is_own_directory(const std::filesystem::path& directory);

/// Makes `directory` and its parents, and removes the files that an earlier start of the run left there:
/// events, run.json, checkpoints and log. Other files stay, also events files of other programs.
/// `may_remove`, if any, is called when it is known what to remove and before any of it is; it may throw.
/// Throws IoError, also if the directory is a symbolic link, and without `may_remove`, if another writer has
/// it.
void prepare_run_directory(const std::filesystem::path& directory,
                           const std::function<void()>& may_remove = {});

/// Removes the temporary files of write_file_atomically() that killed processes have left. Throws
/// IoError as prepare_run_directory() does.
void remove_temporaries(const std::filesystem::path& directory);

/// The names of the events files in `run_directory` that this program has written, sorted. Throws IoError.
std::vector<std::string> own_event_files(const std::filesystem::path& run_directory);

/// Bytes of each of them, by name. A start after a power cut finds out by them
/// whether the events are complete: a file whose last records never reached the disk also consists of whole
/// records. Throws IoError.
std::map<std::string, std::uint64_t> event_file_sizes(const std::filesystem::path& run_directory);

/// Whether a run with this record has a checkpoint. A program keeps its own weights. A run of the user's own
/// training loop has no configuration in its record, and may keep no weights.
bool has_checkpoint(const RunRecord& record);

}  // namespace sweep
