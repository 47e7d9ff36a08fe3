#include "runmanager/records/run_lock.h"

#include <fmt/format.h>

#include <utility>

#include "core/base/error.h"
#include "core/base/read_error.h"
#include "runmanager/records/run_files.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

constexpr const char *kId = "id", *kFailed = "failed";

// What follows the process in the file.
std::string more_text(const RunOwner& owner, const std::string& failed_start) {
  std::string text = fmt::format("{} {}\n", kId, owner.id);
  return failed_start.empty() ? text : text + fmt::format("{} {}\n", kFailed, failed_start);
}

}  // namespace

// The file is opened anew each time: only then does a network file system ask its server.
bool owns(const RunOwner& owner) {
  try {
    return line_of(read_file(owner.file), kId) == owner.id;
  } catch (const ReadError&) {
    throw;
  } catch (const DataError&) {
    return false;
  }
}

std::optional<RunLock> RunLock::try_lock(const fs::path& run_directory) {
  check_is_own_directory(run_directory);
  std::error_code error;
  fs::create_directories(run_directory, error);
  if (error) throw IoError(run_directory.string() + ": cannot make this directory: " + error.message());
  LockFile file(run_directory / kLockFile);
  if (!file.try_lock(LockKind::kExclusive)) return std::nullopt;
  const std::string text = file.text();
  RunLock lock(std::move(file), {.file = run_directory / kLockFile, .id = random_id()});
  lock.failed_start_ = line_of(text, kFailed);
  lock.file_.write_owner(more_text(lock.owner_, lock.failed_start_));
  return lock;
}

void RunLock::note_failure(const std::string& start) {
  failed_start_ = start;
  file_.write_owner(more_text(owner_, failed_start_));
}

std::string failed_start_of(const fs::path& run_directory) {
  try {
    return line_of(read_file(run_directory / kLockFile), kFailed);
  } catch (const DataError&) {
    return "";
  }
}

}  // namespace sweep
