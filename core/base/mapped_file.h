// A file that is read through memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/file.h"

namespace sweep {

/// The bytes of memory that this process may fill: those of the machine, or less in a control group.
std::uint64_t usable_memory();

/// How a mapping is going to be read.
enum class MapUse {
  kWhole,   // all of it fits into memory, and is asked for at once
  kPieces,  // it may be larger than memory: the kernel keeps what was used last, will_need() asks ahead
};

/// A read-only mapping of a whole file; its name may be removed meanwhile. Thread-safe.
class MappedFile {
 public:
  /// Maps what `file`, a descriptor for reading, holds now. Throws IoError if that is nothing or cannot be
  /// mapped. A page that the disk cannot deliver later ends the process with SIGBUS.
  explicit MappedFile(FileDescriptor file, MapUse use);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::uint8_t> bytes() const { return {data_, size_}; }
  /// For other processes, which can map the same pages.
  int fd() const { return file_.get(); }
  MapUse use() const { return use_; }

  /// Has the kernel read these bytes of the mapping ahead, without waiting. Does nothing with kWhole.
  void will_need(std::span<const std::uint8_t> bytes) const;
  /// Tells the kernel to expect random access and stops sequential read-ahead. Does nothing with kWhole.
  void expect_random_reads() const;

 private:
  FileDescriptor file_;
  MapUse use_;
  const std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace sweep
