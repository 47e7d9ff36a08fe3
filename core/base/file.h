// Reads whole files and replaces them atomically.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace sweep {

/// Returns the bytes of `path`. Throws DataError, naming the path and the reason; directories and pipes are
/// errors as well. Thread-safe.
std::string read_file(const std::filesystem::path& path);

/// What a file must survive once it is written. Data in the page cache survives the death of the process;
/// surviving a power cut needs fsync(), which takes ten milliseconds or more.
enum class Survives { kPowerCut, kKill };

/// Writes `content` to a temporary file in the same directory and renames it to `path`: a reader sees either
/// the old file or the complete new one. With Survives::kPowerCut, file and directory are synced, so that
/// this holds after a power cut as well. Throws IoError; the old file is then unchanged and the temporary
/// file is removed. Thread-safe for different paths.
void write_file_atomically(const std::filesystem::path& path, std::string_view content,
                           Survives survives = Survives::kPowerCut);
/// The same for content that is the concatenation of `parts`.
void write_file_atomically(const std::filesystem::path& path, std::span<const std::string_view> parts,
                           Survives survives = Survives::kPowerCut);

/// Returns when the current content of `files` and their directory entries are on disk. Syncing many files at
/// once takes hardly longer than one. Files that do not exist are skipped. Throws IoError. Thread-safe.
void sync_files(std::span<const std::filesystem::path> files);

}  // namespace sweep
