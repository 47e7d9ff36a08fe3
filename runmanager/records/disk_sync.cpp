#include "runmanager/records/disk_sync.h"

#include <chrono>
#include <exception>

#include "core/base/block_signals.h"
#include "core/base/error.h"
#include "core/base/file.h"

namespace sweep {
namespace {

void add_files(const std::filesystem::path& directory, std::vector<std::filesystem::path>& files) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    const std::filesystem::path& path = entry.path();
    if (entry.is_regular_file(error) && path.extension() != ".tmp") files.push_back(path);
  }
}

}  // namespace

DiskSync::DiskSync(std::filesystem::path directory, double seconds_between)
    : directory_(std::move(directory)), seconds_between_(seconds_between) {
  const BlockSignals block;
  thread_ = std::thread([this] { loop(); });
}

DiskSync::~DiskSync() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void DiskSync::begin_run(const std::string& run) {
  const std::lock_guard lock(mutex_);
  running_.insert(run);
}

void DiskSync::end_run(const std::string& run) {
  const std::lock_guard lock(mutex_);
  running_.erase(run);
  ended_.insert(run);
}

void DiskSync::finish() {
  sync_round();
  const std::lock_guard lock(mutex_);
  if (!error_.empty()) throw IoError(error_);
}

void DiskSync::sync_round() {
  const std::lock_guard round(round_);
  std::set<std::string> runs;
  {
    const std::lock_guard lock(mutex_);
    // Runs that have ended since the last round are synced in this one and then forgotten.
    runs.swap(ended_);
    runs.insert(running_.begin(), running_.end());
  }
  std::vector<std::filesystem::path> files;
  add_files(directory_, files);
  for (const std::string& run : runs) add_files(directory_ / run, files);
  sync_files(files);
}

void DiskSync::loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait_for(lock, std::chrono::duration<double>(seconds_between_), [this] { return closing_; });
    if (closing_) return;
    lock.unlock();
    std::string error;
    try {
      sync_round();
    } catch (const std::exception& failure) {  // std::bad_alloc, too: it must not leave the thread.
      error = failure.what();
    }
    lock.lock();
    if (error_.empty()) error_ = error;
  }
}

}  // namespace sweep
