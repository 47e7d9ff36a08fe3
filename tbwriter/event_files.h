// The event files of a run's directory: their names, the lock of their writer, and where they are truncated
// or copied when a run is resumed. TensorBoard reads the files in the order of their names, and moves on for
// good once a later one exists, so the name of a file with later points must sort last.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/base/file.h"

namespace sweep::tbwriter {

/// Others have removed a directory's event file, or made one that is in the way. Files elsewhere can be
/// written.
class DirectoryError : public IoError {
 public:
  using IoError::IoError;
};

/// Names of the event files in `directory`, sorted: like TensorBoard, every name that contains "tfevents".
/// Empty if there is no such directory. Throws IoError if it cannot be read.
std::vector<std::string> list_event_files(const std::filesystem::path& directory);

/// Whether new_event_file_name() has made this name, and not another program that writes event files.
bool is_event_file_name(std::string_view name);

/// Returns a name that sorts after all of `existing`, even if the clock was set back:
/// "events.out.tfevents.1700000000.host.123.000000", with the seconds since 1970 and the process. `now` is in
/// seconds since 1970. Throws DirectoryError if no name can sort after an existing one.
std::string new_event_file_name(const std::vector<std::string>& existing, double now);

/// The same, except that the name sorts before all of `existing`, if any name can.
std::string first_event_file_name(const std::vector<std::string>& existing, double now);

/// Locks an existing directory until the descriptor is closed or the process has ended in any way. Does
/// nothing on file systems without locks. Throws IoError if another writer, in this or another process, holds
/// the lock.
FileDescriptor lock_directory(const std::filesystem::path& directory);

/// The end of a run's files: the first `bytes` bytes of `file`, and no later file.
struct FilePosition {
  std::string file = {};  // name without directory
  std::uint64_t bytes = 0;
};

/// Removes what was written after `position`: the rest of that file and all later event files. TensorBoard
/// then shows what had been added when SummaryWriter::position() returned `position`. A new SummaryWriter
/// continues from there if its options.purge_step is the next step; by default it hides all older points.
///
/// After a power cut the files may be shorter than that, damaged or missing. Each is then truncated to its
/// whole records before the first damage. Returns false if some of the run's events are lost that way; does
/// not notice if a file before the one of `position` is missing.
///
/// Throws IoError if a writer has locked the directory, and then has changed nothing; also if a file cannot
/// be changed. Throws DataError if a file cannot be read.
bool truncate_to(const std::filesystem::path& log_dir, const FilePosition& position);

/// Copies what comes before `position` to a new file, whose name sorts after all others, and leaves
/// `position.file` as it is: a writer that seemed dead may still append to it. `temporary` is the path that
/// the copy has until it is complete and on disk. Returns the end of the copy; an empty name if the old file
/// is missing or has no whole record. Locks nothing and removes nothing. Throws IoError and DataError.
FilePosition copy_prefix(const std::filesystem::path& log_dir, const FilePosition& position,
                         const std::filesystem::path& temporary);

}  // namespace sweep::tbwriter
