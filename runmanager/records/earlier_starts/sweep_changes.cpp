#include "runmanager/records/earlier_starts/sweep_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "core/base/text.h"
#include "core/json/json_text.h"
#include "runmanager/records/run_files.h"

namespace sweep {
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

void add_changes_of_existing(std::span<const RunConfig> runs, std::span<const ExistingRun> existing,
                             std::vector<std::string>& changes) {
  std::vector<std::string> replaced, adopted, longer;
  // Notes are mostly the same for all runs: one line each, with the runs that it is about.
  std::map<std::string, std::vector<std::string>> notes;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const ExistingRun& run = existing[i];
    if (run.fate == RunFate::kInTheWay) replaced.push_back(runs[i].name);
    if (run.is_adopted(runs[i])) adopted.push_back(runs[i].name);
    if (run.fate == RunFate::kContinued && run.record && run.record->status == RunStatus::kCompleted &&
        run.record->stop_reason.empty() && static_cast<int>(run.record->epochs.size()) < runs[i].epochs)
      longer.push_back(runs[i].name);
    if (!run.note.empty()) notes[run.note].push_back(runs[i].name);
  }
  if (!replaced.empty()) {
    changes.push_back(fmt::format(
        "{} with other settings {} trained again; each old one is removed when its "
        "new one has finished: {}",
        counted(replaced.size(), "run"), replaced.size() == 1 ? "is" : "are", first_names(replaced)));
  }
  if (!adopted.empty()) {
    changes.push_back(
        fmt::format("{} from an earlier start {} the same under another name and {} renamed: {}",
                    counted(adopted.size(), "run"), adopted.size() == 1 ? "is" : "are",
                    adopted.size() == 1 ? "was" : "were", first_names(adopted)));
  }
  if (!longer.empty()) {
    changes.push_back(fmt::format("{} {} finished with fewer epochs and {} on: {}",
                                  counted(longer.size(), "run"), longer.size() == 1 ? "was" : "were",
                                  longer.size() == 1 ? "goes" : "go", first_names(longer)));
  }
  for (const auto& [note, names] : notes) changes.push_back(fmt::format("{}: {}", first_names(names), note));
}

}  // namespace

std::string first_names(const std::vector<std::string>& names) {
  constexpr std::size_t kMaxNames = 3;
  const std::size_t shown = std::min(names.size(), kMaxNames);
  const std::string text =
      fmt::format("{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), "; "));
  return shown == names.size() ? text : fmt::format("{} and {} more", text, names.size() - shown);
}

std::optional<std::vector<std::string>> runs_of_sweep_file(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / kSweepFile;
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::nullopt;
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
  return fmt::format("{} of earlier starts {} not part of the search any more; what {} left stays: {}",
                     counted(left_out.size(), "trial"), left_out.size() == 1 ? "is" : "are",
                     left_out.size() == 1 ? "it has" : "they have", first_names(left_out));
}

std::vector<std::string> changes_since(const std::filesystem::path& directory,
                                       std::span<const RunConfig> runs,
                                       std::span<const ExistingRun> existing) {
  std::vector<std::string> changes;
  add_changes_of_existing(runs, existing, changes);
  const std::optional<std::vector<std::string>> old = runs_of_sweep_file(directory);
  if (!old) return changes;
  // A renamed run is neither new nor gone.
  std::vector<std::string> now, adopted;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!existing[i].is_adopted(runs[i])) now.push_back(runs[i].name);
    if (existing[i].is_adopted(runs[i])) adopted.push_back(existing[i].directory);
  }
  const std::vector<std::string> added = without(now, *old), retired = without(without(*old, now), adopted);
  if (!added.empty())
    changes.push_back(
        fmt::format("{} new since the last start: {}", counted(added.size(), "run"), first_names(added)));
  if (!retired.empty()) {
    changes.push_back(fmt::format("{} no longer in the file; what {} left stays: {}",
                                  counted(retired.size(), "run"),
                                  retired.size() == 1 ? "it has" : "they have", first_names(retired)));
  }
  return changes;
}

}  // namespace sweep
