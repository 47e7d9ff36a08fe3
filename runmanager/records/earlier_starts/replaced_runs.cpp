#include "runmanager/records/earlier_starts/replaced_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <regex>
#include <set>
#include <system_error>
#include <vector>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/text.h"
#include "core/json/json_text.h"
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

// "checkpoint.ATTEMPT.safetensors", "checkpoint.ATTEMPT.previous.safetensors", "best.ATTEMPT.safetensors".
const std::regex& name_of_attempt() {
  static const std::regex name(R"((checkpoint|best)\.([0-9a-f]{16}-[0-9]+)(\.previous)?\.safetensors)");
  return name;
}

struct AttemptFile {
  fs::path path;
  std::string attempt, usual_name;
  fs::file_time_type written;
};

std::vector<AttemptFile> attempt_files(const fs::path& run_directory) {
  std::vector<AttemptFile> files;
  for (const fs::directory_entry& entry : directory_entries(run_directory)) {
    const std::string name = entry.path().filename().string();
    std::smatch parts;
    if (entry.is_symlink() || !std::regex_match(name, parts, name_of_attempt())) continue;
    files.push_back({entry.path(), parts[2], fmt::format("{}{}.safetensors", parts[1].str(), parts[3].str()),
                     entry.last_write_time()});
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

namespace {

std::vector<std::string> without(const std::vector<std::string>& names,
                                 const std::vector<std::string>& others) {
  const std::set<std::string> known(others.begin(), others.end());
  std::vector<std::string> rest;
  for (const std::string& name : names) {
    if (!known.contains(name)) rest.push_back(name);
  }
  return rest;
}

// "2 runs are new: a; b", of what is said of several: in `text`, each word that depends on their number is in
// braces.
std::string sentence_about(const std::vector<std::string>& names, std::string_view noun,
                           std::string_view text) {
  const bool one = names.size() == 1;
  const std::string said = fmt::format(
      fmt::runtime(text), fmt::arg("are", one ? "is" : "are"), fmt::arg("were", one ? "was" : "were"),
      fmt::arg("go", one ? "goes" : "go"), fmt::arg("they_have", one ? "it has" : "they have"));
  return fmt::format("{} {}: {}", counted(names.size(), noun), said, first_names(names));
}

}  // namespace

std::string first_names(const std::vector<std::string>& names) {
  constexpr std::size_t kMaxNames = 3;
  const std::size_t shown = std::min(names.size(), kMaxNames);
  const std::string text =
      fmt::format("{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), "; "));
  return shown == names.size() ? text : fmt::format("{} and {} more", text, names.size() - shown);
}

std::optional<std::vector<std::string>> runs_of_sweep_file(const fs::path& directory) {
  const fs::path path = directory / kSweepFile;
  std::error_code error;
  if (!fs::exists(path, error)) return std::nullopt;
  try {
    return read_json_file(path).at("runs").get<std::vector<std::string>>();
  } catch (const std::exception&) {
    return std::nullopt;  // Damaged; it is written again.
  }
}

std::string trials_left_out_text(const std::vector<std::string>& earlier, std::span<const RunConfig> runs) {
  std::vector<std::string> now;
  for (const RunConfig& run : runs) now.push_back(run.name);
  const std::vector<std::string> left_out = without(earlier, now);
  if (left_out.empty()) return "";
  return sentence_about(
      left_out, "trial",
      "of earlier starts {are} not part of the search any more; what {they_have} left stays");
}

std::vector<std::string> changes_since(const fs::path& directory, std::span<const RunConfig> runs,
                                       std::span<const ExistingRun> existing) {
  std::vector<std::string> replaced, adopted, longer, changes;
  std::vector<std::string> now, former;  // a renamed run is neither new nor gone
  // Notes are mostly the same for all runs: one line each, with the runs that it is about.
  std::map<std::string, std::vector<std::string>> notes;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const ExistingRun& run = existing[i];
    const std::string& name = runs[i].name;
    if (run.fate == RunFate::kInTheWay) replaced.push_back(name);
    (run.is_adopted(runs[i]) ? adopted : now).push_back(name);
    if (run.is_adopted(runs[i])) former.push_back(run.directory);
    if (run.fate == RunFate::kContinued && run.record && run.record->status == RunStatus::kCompleted &&
        run.record->stop_reason.empty() && static_cast<int>(run.record->epochs.size()) < runs[i].epochs)
      longer.push_back(name);
    if (!run.note.empty()) notes[run.note].push_back(name);
  }
  const auto add = [&changes](const std::vector<std::string>& names, std::string_view text) {
    if (!names.empty()) changes.push_back(sentence_about(names, "run", text));
  };
  add(replaced,
      "with other settings {are} trained again; each old one is removed when its new one has finished");
  add(adopted, "from an earlier start {are} the same under another name and {were} renamed");
  add(longer, "{were} finished with fewer epochs and {go} on");
  for (const auto& [note, names] : notes) changes.push_back(fmt::format("{}: {}", first_names(names), note));
  if (const std::optional<std::vector<std::string>> old = runs_of_sweep_file(directory)) {
    add(without(now, *old), "new since the last start");
    add(without(without(*old, now), former), "no longer in the file; what {they_have} left stays");
  }
  return changes;
}

}  // namespace sweep
