#include "runmanager/records/disk_sync.h"

#include <chrono>
#include <exception>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/threads.h"
#include "runmanager/records/run_files.h"
#include "tbwriter/event_files.h"

namespace sweep {
namespace {

constexpr std::chrono::seconds kBetweenRounds{10};

// What is synced before the rest: events.
struct Files {
  std::vector<std::filesystem::path> events, others;
};

void add_files(const std::filesystem::path& directory, Files& files) {
  std::error_code error;
  for (const auto& entry : directory_entries(directory)) {
    const std::filesystem::path& path = entry.path();
    if (!entry.is_regular_file(error) || path.extension() == ".tmp") continue;
    (tbwriter::is_event_file_name(path.filename().string()) ? files.events : files.others).push_back(path);
  }
}

}  // namespace

DiskSync::DiskSync(std::filesystem::path directory) : directory_(std::move(directory)) {
  const BlockSignals block;
  thread_ = start_thread("syncs files to the disk", [this] { loop(); });
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
  ended_.erase(run);
}

void DiskSync::end_run(const std::string& run) {
  const std::lock_guard lock(mutex_);
  running_.erase(run);
  ended_.insert(run);
}

void DiskSync::finish() {
  sync_round(Runs::kAll);
  const std::lock_guard lock(mutex_);
  if (!error_.empty()) throw IoError(error_);
}

void DiskSync::sync_round(Runs which) {
  const std::lock_guard round(round_);
  std::set<std::string> runs, ended;
  {
    const std::lock_guard lock(mutex_);
    // Runs that have ended since the last round are synced in this one and then forgotten.
    ended.swap(ended_);
    runs = ended;
    if (which == Runs::kAll) runs.insert(running_.begin(), running_.end());
  }
  Files files;
  add_files(directory_, files);
  for (const std::string& run : runs) add_files(directory_ / run, files);
  // The events come first: a checkpoint says how far they reach, and a power cut must not leave it without
  // them.
  sync_files(files.events);
  sync_files(files.others);
  // The directory may be new, and the one above it.
  const std::filesystem::path above = directory_of(directory_);
  sync_directory(above);
  sync_directory(directory_of(above));
  // The checkpoints with the usual name are safe now. If a power cut brings one of these back, it does no
  // harm.
  const std::lock_guard lock(mutex_);
  std::error_code error;
  for (const std::string& run : ended) {
    // A run that goes on again may have a newer one that is not.
    if (!running_.contains(run)) std::filesystem::remove(directory_ / run / kPreviousCheckpointFile, error);
  }
}

void DiskSync::loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait_for(lock, kBetweenRounds, [this] { return closing_; });
    if (closing_) return;
    lock.unlock();
    std::string error;
    try {
      sync_round(Runs::kEnded);
    } catch (const std::exception& failure) {  // std::bad_alloc, too: it must not leave the thread.
      error = failure.what();
    }
    lock.lock();
    if (error_.empty()) error_ = error;
  }
}

}  // namespace sweep
