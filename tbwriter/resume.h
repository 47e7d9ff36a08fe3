// Resumes a run: truncates its files to where they were when its checkpoint was made.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace sweep::tbwriter {

/// The end of a run's files: the first `bytes` bytes of `file`, and no later file.
struct FilePosition {
  std::string file = {};  // name without directory
  std::uint64_t bytes = 0;
};

/// Removes what was written after `position`: the rest of that file and all later event files. TensorBoard
/// then shows what had been added when SummaryWriter::position() returned `position`, and a new SummaryWriter
/// continues from there.
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
