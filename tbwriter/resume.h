// Going on with a run: its files are cut back to where its checkpoint was made.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace sweep::tbwriter {

/// How far a run's files go: the bytes of `file` before `bytes` are whole records, and no later file counts.
struct FilePosition {
  std::string file = {};  // name without directory
  std::uint64_t bytes = 0;
};

/// Takes away what was written after `position`: the end of that file, and all later event files. What
/// TensorBoard then shows is what had been added when SummaryWriter::position() returned `position`; a new
/// SummaryWriter goes on from there. Throws DataError if the file is missing, shorter, or has no record that
/// ends there, and IoError if a writer has the directory or a file cannot be changed. Except in the last case
/// nothing is changed then.
void cut_back(const std::filesystem::path& log_dir, const FilePosition& position);

}  // namespace sweep::tbwriter
