#include "runmanager/claims/file_beat.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "core/base/block_signals.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/start_thread.h"

namespace sweep {
namespace {

// The file is opened for it: only then does a network file system ask its server.
std::pair<std::int64_t, std::int64_t> time_of(const std::filesystem::path& file) {
  try {
    const FileDescriptor opened = open_regular_file(file);
    struct stat info {};
    if (::fstat(opened.get(), &info) == 0) return {info.st_mtim.tv_sec, info.st_mtim.tv_nsec};
  } catch (const DataError&) {
  }
  return {};
}

}  // namespace

FileBeat::FileBeat(std::filesystem::path file, std::chrono::duration<double> lease)
    : file_(std::move(file)), between_(lease / kBeatsPerLease) {
  const BlockSignals block;
  thread_ = start_thread("tells others that this sweep lives", [this] { loop(); });
}

FileBeat::~FileBeat() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void FileBeat::loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait_for(lock, between_, [this] { return closing_; });
    if (closing_) return;
    ::utimensat(AT_FDCWD, file_.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
  }
}

bool beats_within(const std::filesystem::path& file, std::chrono::duration<double> lease) {
  const auto begin = std::chrono::steady_clock::now();
  const auto first = time_of(file);
  while (std::chrono::steady_clock::now() - begin < lease) {
    if (time_of(file) != first) return true;
    std::this_thread::sleep_for(lease / (4 * kBeatsPerLease));
  }
  return false;
}

}  // namespace sweep
