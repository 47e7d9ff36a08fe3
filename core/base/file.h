// Reading files whole, and replacing them so that nobody ever sees half of one.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace sweep {

/// Returns the bytes of `path`. Throws DataError, naming the path and the reason, also for a directory or a
/// pipe.
std::string read_file(const std::filesystem::path& path);

/// Writes `content` beside `path`, syncs it, renames it to `path` and syncs the directory: a reader, and
/// a machine that lost power, see either the old file or the whole new one. Throws IoError; then the old
/// file is still there, and nothing is left beside it. Thread-safe for different paths.
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

}  // namespace sweep
