#include "runmanager/records/earlier_starts/sweep_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <system_error>

#include "core/base/text.h"
#include "core/json/json_text.h"
#include "runmanager/records/run_files.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

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
  for (const auto& [note, names] : notes)
    changes.push_back(fmt::format("{}: {}{}", first_names(names), names.size() > 1 ? "each " : "", note));
  if (const std::optional<std::vector<std::string>> old = runs_of_sweep_file(directory)) {
    add(without(now, *old), "new since the last start");
    add(without(without(*old, now), former), "no longer in the file; what {they_have} left stays");
  }
  return changes;
}

}  // namespace sweep
