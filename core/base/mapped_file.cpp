#include "core/base/mapped_file.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include "core/base/error.h"

namespace sweep {

std::uint64_t usable_memory() {
  const std::uint64_t all = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                            static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  // In a container the group of this process is the root of what it sees. "max" is no number.
  std::uint64_t limit = 0;
  std::ifstream in("/sys/fs/cgroup/memory.max");
  return in >> limit ? std::min(all, limit) : all;
}

MappedFile::MappedFile(FileDescriptor file, MapUse use) : file_(std::move(file)), use_(use) {
  struct stat info {};
  if (::fstat(file_.get(), &info) != 0 || info.st_size <= 0) throw IoError("an empty file cannot be mapped");
  size_ = static_cast<std::size_t>(info.st_size);
  const int flags = MAP_SHARED | (use_ == MapUse::kWhole ? MAP_POPULATE : 0);
  void* data = ::mmap(nullptr, size_, PROT_READ, flags, file_.get(), 0);
  if (data == MAP_FAILED)
    throw IoError("cannot map " + std::to_string(size_) + " bytes of a file: " + std::strerror(errno));
  data_ = static_cast<const std::uint8_t*>(data);
}

MappedFile::~MappedFile() { ::munmap(const_cast<std::uint8_t*>(data_), size_); }

void MappedFile::will_need(std::span<const std::uint8_t> bytes) const {
  if (use_ == MapUse::kWhole || bytes.empty()) return;
  static const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto offset = static_cast<std::size_t>(bytes.data() - data_), begin = offset / page * page;
  ::madvise(const_cast<std::uint8_t*>(data_) + begin, offset + bytes.size() - begin, MADV_WILLNEED);
}

void MappedFile::expect_random_reads() const {
  if (use_ == MapUse::kPieces) ::madvise(const_cast<std::uint8_t*>(data_), size_, MADV_RANDOM);
}

}  // namespace sweep
