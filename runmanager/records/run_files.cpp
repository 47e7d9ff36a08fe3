#include "runmanager/records/run_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <system_error>
#include <vector>

#include "core/base/error.h"
#include "core/base/suggest.h"
#include "tbwriter/event_files.h"

namespace sweep {
namespace {

// "run.json.4711.tmp": a name that write_file_atomically() makes.
bool is_temporary(const std::string& name) {
  if (!name.ends_with(".tmp")) return false;
  const auto begins = [&name](const char* file) { return name.starts_with(std::string(file) + "."); };
  constexpr const char* kFiles[] = {
      kRunRecordFile, kCheckpointFile, kPreviousCheckpointFile, kBestFile,      kStartFile, kProgressFile,
      kInputsFile,    kSweepFile,      "results.csv",           "results.json", kReportFile};
  return std::ranges::any_of(kFiles, begins) || name.starts_with(kEventsCopy);
}

constexpr const char* kUnprepared = "cannot prepare the run's directory";

}  // namespace

void throw_io(const std::filesystem::path& path, std::string_view problem, int error) {
  throw IoError(fmt::format("{}: {}: {}", path.string(), problem, std::strerror(error)));
}

std::vector<std::filesystem::directory_entry> directory_entries(const std::filesystem::path& directory) {
  std::vector<std::filesystem::directory_entry> entries;
  std::error_code error;
  for (std::filesystem::directory_iterator it(directory, error), end; !error && it != end;
       it.increment(error))
    entries.push_back(*it);
  if (error && error != std::errc::no_such_file_or_directory && error != std::errc::not_a_directory)
    throw_io(directory, "cannot list", error.value());
  return entries;
}

void refuse_directory(const std::filesystem::path& directory, std::string_view problem,
                      std::string_view want) {
  std::error_code error, ignored;
  if (std::filesystem::exists(directory, error))
    throw DataError(fmt::format("{}: {}; want {}", directory.string(), problem, want));
  const std::filesystem::path meant = "runs" / directory;
  const bool is_name = !directory.empty() && *directory.begin() != "." && *directory.begin() != "..";
  const bool is_there = is_name && std::filesystem::exists(meant, ignored);
  throw DataError(fmt::format("{}: {}; want {}{}", directory.string(),
                              error ? error.message() : "is not there", want,
                              did_you_mean(is_there ? meant.string() : "")));
}

void require_directory(const std::filesystem::path& directory, std::string_view want) {
  std::error_code error;
  if (!std::filesystem::is_directory(directory, error)) refuse_directory(directory, "is no directory", want);
}

void check_is_own_directory(const std::filesystem::path& directory) {
  std::error_code error;
  if (std::filesystem::is_symlink(std::filesystem::symlink_status(directory, error))) {
    throw IoError(
        fmt::format("{}: is a symbolic link; a run's files are written only to a directory of its own",
                    directory.string()));
  }
}

void prepare_run_directory(const std::filesystem::path& directory,
                           const std::function<void()>& may_remove) try {
  check_is_own_directory(directory);
  std::filesystem::create_directories(directory);
  std::vector<std::filesystem::path> old;
  for (const auto& entry : directory_entries(directory)) {
    const std::string name = entry.path().filename().string();
    const bool ours = tbwriter::is_event_file_name(name) || name == kRunRecordFile ||
                      name == kCheckpointFile || name == kPreviousCheckpointFile || name == kBestFile ||
                      name == kLogFile || is_temporary(name);
    if (ours) old.push_back(entry.path());
  }
  // Removes nothing of another process that writes this run.
  std::optional<FileDescriptor> lock;
  if (!may_remove) lock.emplace(tbwriter::lock_directory(directory));
  if (may_remove) may_remove();
  for (const std::filesystem::path& path : old) std::filesystem::remove(path);
} catch (const std::filesystem::filesystem_error& error) {
  throw_io(directory, kUnprepared, error.code().value());
}

void remove_temporaries(const std::filesystem::path& directory) try {
  check_is_own_directory(directory);
  for (const auto& entry : directory_entries(directory)) {
    if (is_temporary(entry.path().filename().string())) std::filesystem::remove(entry.path());
  }
} catch (const std::filesystem::filesystem_error& error) {
  throw_io(directory, kUnprepared, error.code().value());
}

std::vector<std::string> own_event_files(const std::filesystem::path& run_directory) {
  std::vector<std::string> files = tbwriter::list_event_files(run_directory);
  std::erase_if(files, [](const std::string& file) { return !tbwriter::is_event_file_name(file); });
  return files;
}

std::map<std::string, std::uint64_t> event_file_sizes(const std::filesystem::path& run_directory) {
  std::map<std::string, std::uint64_t> sizes;
  for (const std::string& name : own_event_files(run_directory)) {
    std::error_code error;
    sizes[name] = std::filesystem::file_size(run_directory / name, error);
    if (error) throw_io(run_directory / name, "cannot read its size", error.value());
  }
  return sizes;
}

bool has_checkpoint(const RunRecord& record) {
  return !record.epochs.empty() && record.config.is_object() && !record.config.empty() &&
         !record.config.contains("command");
}

}  // namespace sweep
