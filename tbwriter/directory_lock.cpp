#include "tbwriter/directory_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/base/error.h"
#include "core/base/retry.h"
#include "tbwriter/event_file_name.h"

namespace sweep::tbwriter {

// flock() rather than a lock file: the kernel releases it when the process dies, so no stale lock remains.
FileDescriptor lock_directory(const std::filesystem::path& directory) {
  FileDescriptor fd(
      retry_interrupted([&] { return ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
  if (fd.get() < 0) {
    throw IoError(directory.string() + ": cannot open the run's directory: " + std::strerror(errno));
  }
  if (retry_interrupted([&fd] { return ::flock(fd.get(), LOCK_EX | LOCK_NB); }) == 0) return fd;
  if (errno != EWOULDBLOCK) return fd;  // The file system does not support locks.
  const auto files = list_event_files(directory);
  throw IoError(directory.string() + ": another writer has this run's directory" +
                (files.empty() ? "" : "; its file, named by host and process, is " + files.back()));
}

}  // namespace sweep::tbwriter
