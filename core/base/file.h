// Reading files whole, and replacing them so that nobody ever sees half of one.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace sweep {

/// Returns the bytes of `path`. Throws DataError, naming the path and the reason, also for a directory or a
/// pipe.
std::string read_file(const std::filesystem::path& path);

/// What a file survives as soon as it is written. The kernel keeps what a program that was killed has
/// written; only when the machine itself stops, the disk must have it, which takes ten milliseconds and more.
enum class Survives { kPowerCut, kKill };

/// Writes `content` beside `path` and renames it to `path`: a reader sees either the old file or the whole
/// new one. With Survives::kPowerCut file and directory are synced, so that this also holds for a machine
/// that lost power. Throws IoError; then the old file is still there, and nothing is left beside it.
/// Thread-safe for different paths.
void write_file_atomically(const std::filesystem::path& path, std::string_view content,
                           Survives survives = Survives::kPowerCut);
/// The same with the content in `parts`, one behind the other.
void write_file_atomically(const std::filesystem::path& path, std::span<const std::string_view> parts,
                           Survives survives = Survives::kPowerCut);

/// Returns when the disk has the present content of `files` and the names in their directories. Many files at
/// once take hardly longer than one. Files that are not there are left out. Throws IoError.
void sync_files(std::span<const std::filesystem::path> files);

}  // namespace sweep
