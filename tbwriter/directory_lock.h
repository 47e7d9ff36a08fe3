// A run's directory belongs to one writer at a time. Not part of the installed interface.
#pragma once

#include <filesystem>
#include <utility>

namespace sweep::tbwriter {

/// Holds a file descriptor. Move-only.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor() { reset(); }
  int get() const { return fd_; }
  void reset();
  /// Gives the descriptor up without closing it.
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

/// Locks an existing directory until the descriptor is closed or the process is gone, however it went.
/// Throws IoError if another writer, in this or another process, has it.
Descriptor lock_directory(const std::filesystem::path& directory);

}  // namespace sweep::tbwriter
