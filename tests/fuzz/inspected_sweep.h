// What fuzz targets do with a sweep's directory.
#pragma once

#include <filesystem>
#include <string_view>

/// A directory of this process, in memory where the system has such a file system. Removed in the end.
class FuzzDirectory {
 public:
  FuzzDirectory();
  ~FuzzDirectory();
  FuzzDirectory(const FuzzDirectory&) = delete;
  FuzzDirectory& operator=(const FuzzDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void clear() const;
  /// Writes a file, in directories that are made for it.
  void write(std::string_view name, std::string_view content) const;

 private:
  std::filesystem::path path_;
};

/// Reads a sweep's directory in every way that the program does: as `show`, `status`, `watch`, `fsck`,
/// `export` and `verify`, and as a start of the sweep that its sweep.json describes, up to the point where
/// data would be loaded. Each ends in success or in a sweep::Error; anything else leaves this function.
/// Changes nothing.
void inspect_sweep(const std::filesystem::path& directory);
