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
/// continues from there. Throws DataError if the file is missing, shorter, or has no record that ends there,
/// and IoError if a writer has locked the directory; nothing is changed in these cases. Throws IoError if a
/// file cannot be changed.
void cut_back(const std::filesystem::path& log_dir, const FilePosition& position);

}  // namespace sweep::tbwriter
