#include "runmanager/records/earlier_starts/replaced_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "core/base/file.h"
#include "runmanager/records/run_files.h"
#include "runmanager/records/run_record_json.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kReplaced = ".replaced-";

void rename_directory(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (error) throw_io(from, "cannot rename to " + to.filename().string(), error.value());
}

}  // namespace

bool is_replaced_name(std::string_view name) {
  const std::size_t at = name.rfind(kReplaced);
  if (at == std::string_view::npos || at == 0) return false;
  const std::string_view number = name.substr(at + kReplaced.size());
  return !number.empty() &&
         std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool has_run_set_aside(const fs::path& sweep_directory, const std::string& run) {
  std::error_code error;
  return fs::exists(fs::symlink_status(sweep_directory / fmt::format("{}{}1", run, kReplaced), error));
}

void remove_runs_set_aside(const fs::path& sweep_directory, const std::string& run) {
  std::error_code error;
  std::vector<fs::path> aside;
  for (const fs::directory_entry& entry : directory_entries(sweep_directory)) {
    const std::string name = entry.path().filename().string();
    if (is_replaced_name(name) && name.substr(0, name.rfind(kReplaced)) == run && !entry.is_symlink())
      aside.push_back(entry.path());
  }
  std::ranges::sort(aside, std::greater{});  // number 1 is the last: has_run_set_aside() looks for that one
  for (const fs::path& path : aside) {
    fs::remove_all(path, error);
    if (error) throw_io(path, "cannot remove", error.value());
  }
}

namespace {

void set_run_aside(const fs::path& sweep_directory, const std::string& run) {
  std::error_code error;
  fs::path aside;
  int number = 1;
  do {
    aside = sweep_directory / fmt::format("{}{}{}", run, kReplaced, number++);
  } while (fs::exists(fs::symlink_status(aside, error)));
  rename_directory(sweep_directory / run, aside);
}

// Gives the run in `directory` the name and the parameters that `config` has now.
void adopt_run(const fs::path& sweep_directory, const std::string& directory, const RunConfig& config,
               RunRecord& record) {
  const fs::path path = sweep_directory / config.name;
  if (directory != config.name) rename_directory(sweep_directory / directory, path);
  record.name = config.name;
  record.params = config.params;
  write_file_atomically(path / kRunRecordFile, run_record_text(record));
}

// Until the files of the new run are on the disk, a power cut would leave none that is whole.
void remove_replaced_runs(const fs::path& sweep_directory, const std::string& run) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : directory_entries(sweep_directory / run)) {
    if (!entry.is_symlink() && entry.is_regular_file()) files.push_back(entry.path());
  }
  sync_files(files);
  sync_directory(sweep_directory);
  remove_runs_set_aside(sweep_directory, run);
}

}  // namespace

void make_room(const fs::path& sweep_directory, std::span<const RunConfig> runs,
               std::span<ExistingRun> existing) {
  for (std::size_t i = 0; i < existing.size(); ++i) {
    const RunConfig& config = runs[i];
    ExistingRun& run = existing[i];
    if (run.fate == RunFate::kInTheWay) {
      set_run_aside(sweep_directory, config.name);
      continue;
    }
    // A pruned trial has ended, too, unless its search goes further now.
    const bool has_ended =
        run.fate == RunFate::kKept || (run.record && run.record->status == RunStatus::kPruned);
    if (has_ended) remove_temporaries(sweep_directory / run.directory);
    // The record may also be behind its directory's name: a start was killed between the two.
    if (run.record && (run.is_adopted(config) || run.record->name != config.name ||
                       to_json(run.record->params) != to_json(config.params)))
      adopt_run(sweep_directory, run.directory, config, *run.record);
    // Likewise between the end of a new run and the removal of the old one.
    if (has_ended && has_run_set_aside(sweep_directory, config.name))
      remove_replaced_runs(sweep_directory, config.name);
  }
}

namespace {

// Whether the part of a name is an attempt: "3f2a9c01d2e4b6a8-2".
bool is_attempt(std::string_view part) {
  constexpr std::size_t kDigits = 16;
  return part.find_first_not_of("0123456789abcdef") == kDigits && part[kDigits] == '-' &&
         part.size() > kDigits + 1 &&
         part.find_first_not_of("0123456789", kDigits + 1) == std::string_view::npos;
}

// "checkpoint.ATTEMPT.safetensors", "checkpoint.ATTEMPT.previous.safetensors", "best.ATTEMPT.safetensors".
struct AttemptFile {
  fs::path path;
  std::string attempt, usual_name;
  fs::file_time_type written;
};

std::vector<AttemptFile> attempt_files(const fs::path& run_directory) {
  std::vector<AttemptFile> files;
  for (const fs::directory_entry& entry : directory_entries(run_directory)) {
    const std::string name = entry.path().filename().string();
    const std::size_t begin = name.find('.') + 1, end = name.find('.', begin);
    if (begin == 0 || end == std::string::npos || !is_attempt(name.substr(begin, end - begin))) continue;
    std::string usual_name = name.substr(0, begin) + name.substr(end + 1);
    const bool is_kept =
        usual_name == kCheckpointFile || usual_name == kPreviousCheckpointFile || usual_name == kBestFile;
    if (entry.is_symlink() || !is_kept) continue;
    files.push_back(
        {entry.path(), name.substr(begin, end - begin), std::move(usual_name), entry.last_write_time()});
  }
  return files;
}

void adopt_newest(const fs::path& run_directory) {
  const std::vector<AttemptFile> files = attempt_files(run_directory);
  if (files.empty()) return;
  const auto newest = std::ranges::max_element(files, {}, &AttemptFile::written);
  for (const AttemptFile& file : files) {
    if (file.attempt == newest->attempt)
      fs::rename(file.path, run_directory / file.usual_name);
    else
      fs::remove(file.path);
  }
}

}  // namespace

void adopt_attempts(const fs::path& sweep_directory) {
  const fs::path claims = sweep_directory / ".claims";
  std::error_code error;
  if (fs::symlink_status(claims, error).type() != fs::file_type::directory) return;
  try {
    for (const fs::directory_entry& entry : directory_entries(sweep_directory)) {
      if (!entry.is_symlink() && entry.is_directory() && entry.path() != claims) adopt_newest(entry.path());
    }
    fs::remove_all(claims);
  } catch (const fs::filesystem_error& failed) {
    throw_io(failed.path1(), "cannot be brought to the names of this version", failed.code().value());
  }
}

}  // namespace sweep
