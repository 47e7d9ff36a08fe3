// A folder that is removed with its content.
#pragma once

#include <filesystem>

namespace sweep {

/// Owns a new folder. Not thread-safe.
class TemporaryFolder {
 public:
  /// Makes the folder START plus six letters or digits, for this user only; folders above it must exist.
  /// Throws IoError, naming `start` and the reason.
  explicit TemporaryFolder(const std::filesystem::path& start);
  /// Removes it. What cannot be removed stays.
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace sweep
