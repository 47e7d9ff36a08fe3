// Locks a run's directory for one writer at a time. Not part of the installed interface.
#pragma once

#include <filesystem>
#include <utility>

namespace sweep::tbwriter {

/// Owns a file descriptor. Move-only.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor() { reset(); }
  int get() const { return fd_; }
  void reset();
  /// Releases ownership without closing the descriptor.
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

/// Locks an existing directory until the descriptor is closed or the process has ended in any way.
/// Does nothing on file systems without locks. Throws IoError if another writer, in this or
/// another process, holds the lock.
Descriptor lock_directory(const std::filesystem::path& directory);

}  // namespace sweep::tbwriter
