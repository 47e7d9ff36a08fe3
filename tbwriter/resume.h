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
/// After a power cut the files may be shorter than that, damaged or missing. Each is then cut to its whole
/// records before the first damage, and the result is false: some of the run's events are lost. A file that
/// is missing before the one of `position` is not noticed.
///
/// Throws IoError if a writer has locked the directory, and then has changed nothing; also if a file cannot
/// be changed. Throws DataError if a file cannot be read.
bool cut_back(const std::filesystem::path& log_dir, const FilePosition& position);

/// Does not cut `position.file`, which a writer that was thought dead may still append to, but copies what
/// stands before `position` to a new file, whose name sorts after all others. `temporary` is the path that
/// the copy has until it is complete and on the disk. Returns its end; an empty name if the old file is
/// missing or has no whole record. Locks nothing and removes nothing. Throws IoError and DataError.
FilePosition copy_front(const std::filesystem::path& log_dir, const FilePosition& position,
                        const std::filesystem::path& temporary);

}  // namespace sweep::tbwriter
