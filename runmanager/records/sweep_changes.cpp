#include "runmanager/records/sweep_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "core/base/file.h"
#include "runmanager/records/run_files.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

std::string runs_text(std::size_t count) { return fmt::format("{} run{}", count, count == 1 ? "" : "s"); }

// The first few names, and the number of the others.
std::string abbreviated(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 3;
  const std::size_t shown = std::min(names.size(), kMost);
  const std::string text =
      fmt::format("{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), "; "));
  return shown == names.size() ? text : fmt::format("{} and {} more", text, names.size() - shown);
}

std::vector<std::string> without(const std::vector<std::string>& names,
                                 const std::vector<std::string>& others) {
  const std::set<std::string> known(others.begin(), others.end());
  std::vector<std::string> rest;
  for (const std::string& name : names) {
    if (!known.contains(name)) rest.push_back(name);
  }
  return rest;
}

// The names of the last start's runs; empty if there was none.
std::optional<std::vector<std::string>> runs_of_sweep_file(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / kSweepFile;
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::nullopt;
  try {
    return Json::parse(read_file(path)).at("runs").get<std::vector<std::string>>();
  } catch (const std::exception&) {
    return std::nullopt;  // Damaged; it is written again.
  }
}

}  // namespace

std::vector<std::string> changes_since(const std::filesystem::path& directory,
                                       std::span<const RunConfig> runs,
                                       const std::vector<std::string>& outdated) {
  std::vector<std::string> changes;
  if (!outdated.empty()) {
    changes.push_back(fmt::format(
        "{} finished run{} had other settings and {} trained again; with --fresh they would be kept: {}",
        outdated.size(), outdated.size() == 1 ? "" : "s", outdated.size() == 1 ? "is" : "are",
        abbreviated(outdated)));
  }
  const std::optional<std::vector<std::string>> old = runs_of_sweep_file(directory);
  if (!old) return changes;
  std::vector<std::string> now;
  for (const RunConfig& run : runs) now.push_back(run.name);
  const std::vector<std::string> added = without(now, *old), retired = without(*old, now);
  if (!added.empty())
    changes.push_back(
        fmt::format("{} new since the last start: {}", runs_text(added.size()), abbreviated(added)));
  if (!retired.empty()) {
    changes.push_back(fmt::format("{} no longer in the file; what {} left stays: {}",
                                  runs_text(retired.size()), retired.size() == 1 ? "it has" : "they have",
                                  abbreviated(retired)));
  }
  return changes;
}

}  // namespace sweep
