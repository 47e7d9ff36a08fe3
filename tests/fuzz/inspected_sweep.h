// What fuzz targets do with a sweep's directory.
#pragma once

#include <filesystem>
#include <string_view>

/// A directory of this process, in memory where the system has such a file system. Removed in the end.
const std::filesystem::path& fuzz_directory();

/// Writes a file below it, in directories that are made for it.
void write_fuzz_file(std::string_view name, std::string_view content);

/// Reads a sweep's directory in every way that the program does: as `show`, `status`, `watch`, `fsck`,
/// `export` and `verify`, and as a start of the sweep that its sweep.json describes, up to the point where
/// data would be loaded. Each ends in success or in a sweep::Error; anything else leaves this function.
/// Changes nothing.
void inspect_sweep(const std::filesystem::path& directory);
