// Opens regular files, reads whole ones and replaces them atomically.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace sweep {

/// Makes `call` until it ends otherwise than with -1 and EINTR; returns what it then returned. For calls that
/// change nothing if they are interrupted; so not for close(). Thread-safe.
template <typename Call>
auto retry_interrupted(const Call& call) {
  for (;;) {
    const auto result = call();
    if (result != -1 || errno != EINTR) return result;
  }
}

/// close(), which on Linux has closed the descriptor also if it was interrupted.
inline int close_descriptor(int fd) { return ::close(fd) == 0 || errno == EINTR ? 0 : -1; }

/// Owns a file descriptor and closes it. Not thread-safe.
class FileDescriptor {
 public:
  explicit FileDescriptor(int fd = -1) : fd_(fd) {}
  ~FileDescriptor();
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  FileDescriptor(const FileDescriptor&) = delete;

  int get() const { return fd_; }
  /// Returns the descriptor, which the caller then has to close.
  int release();

 private:
  int fd_;  // -1: none
};

/// Returns the directory that `path` is in: "." for a bare name.
std::filesystem::path directory_of(const std::filesystem::path& path);

/// Makes a directory and those above it, unless they are there. Throws IoError, naming the path and the
/// reason. Thread-safe.
void make_directories(const std::filesystem::path& path);

/// Opens `path` for reading. Throws DataError, naming the path and the reason, unless it is a regular file or
/// a link to one: a pipe or a device would block, or never end. ReadError if it exists and cannot be opened.
/// Never waits. Thread-safe, as the functions below.
FileDescriptor open_regular_file(const std::filesystem::path& path);

/// The size of an open file, which messages call `path`. Throws ReadError.
std::uint64_t file_bytes(int fd, const std::filesystem::path& path);

/// Fills `out` with what comes next in the file, which messages call `path`; returns less than its size only
/// at the end. Throws ReadError.
std::size_t read_next(int fd, std::span<std::byte> out, const std::filesystem::path& path);

/// What open_output_file() opens. kNew: a file that must not exist yet. kAppend: a file that is made if it is
/// missing; every write goes to its end. kUpdate: the same for reading and writing anywhere.
enum class OutputMode { kNew, kAppend, kUpdate };

/// Opens a file for writing without waiting. Throws IoError, naming the path and the reason, if it is a
/// symbolic link or anything else than a regular file: what a link points to is not this program's to write.
FileDescriptor open_output_file(const std::filesystem::path& path, OutputMode mode);

/// Writes all of `content` to the descriptor. Throws IoError, naming `path` and the reason.
void write_all(int fd, std::string_view content, const std::filesystem::path& path);

/// Returns the bytes of `path`. Throws DataError, naming the path and the reason; directories and pipes are
/// errors as well. ReadError if it exists and cannot be read. Thread-safe.
std::string read_file(const std::filesystem::path& path);

/// What a file must survive once it is written. Data in the page cache survives the death of the process;
/// surviving a power cut needs fsync(), which takes ten milliseconds or more.
enum class Survives { kPowerCut, kKill };

/// A file that is written piece by piece under a temporary name in the directory of `path`, which it takes
/// when it is complete: a reader sees either the old file or the whole new one. Not thread-safe.
class NewFile {
 public:
  /// Throws IoError if it cannot be made.
  explicit NewFile(std::filesystem::path path);
  /// Removes the file unless publish() was called. A killed process leaves PATH.….tmp.
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  /// For reading and writing; -1 after release() and publish().
  int fd() const { return fd_; }
  const std::filesystem::path& path() const { return path_; }
  /// Returns the descriptor: the file can be used further, even if it never gets its name.
  FileDescriptor release() { return FileDescriptor(std::exchange(fd_, -1)); }
  /// Closes the file, unless release() was called, and renames it. Throws IoError.
  void publish();

 private:
  std::filesystem::path path_, temporary_;  // the latter is empty once it is published
  int fd_ = -1;
};

/// Writes `content` to a new temporary file in the same directory and renames it to `path`: a reader sees
/// either the old file or the complete new one. With Survives::kPowerCut, file and directory are synced, so
/// that this holds after a power cut as well. Throws IoError; the old file is then unchanged and the
/// temporary file is removed. Thread-safe for different paths.
void write_file_atomically(const std::filesystem::path& path, std::string_view content,
                           Survives survives = Survives::kPowerCut);
/// The same for content that is the concatenation of `parts`.
void write_file_atomically(const std::filesystem::path& path, std::span<const std::string_view> parts,
                           Survives survives = Survives::kPowerCut);

/// Gives the file `from` a second name, `to`, and replaces atomically what had that name. File systems
/// without hard links get a synced copy. Neither the file nor the directory is synced. Throws IoError.
/// Thread-safe for different `to`.
void link_file_atomically(const std::filesystem::path& from, const std::filesystem::path& to);

/// Returns when the names in `directory` are on disk: files that were created, renamed or removed. Does
/// nothing if the directory may not be read or does not exist, or if its file system cannot sync directories.
/// Throws IoError. Thread-safe.
void sync_directory(const std::filesystem::path& directory);

/// Returns when the current content of `files` and their directory entries are on disk. Syncing many files at
/// once takes hardly longer than one. Files that do not exist are skipped. Throws IoError. Thread-safe.
void sync_files(std::span<const std::filesystem::path> files);

/// Owns a new folder, which is removed with its content. Not thread-safe.
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
