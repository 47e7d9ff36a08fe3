#include "runmanager/sweep/joined_start.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/json/json_text.h"
#include "runmanager/records/earlier_starts/sweep_changes.h"
#include "runmanager/records/lock_file.h"
#include "runmanager/records/run_files.h"
#include "runmanager/records/run_identity.h"
#include "runmanager/sweepfile/sweep_file.h"
#include "runmanager/text/json_output.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxNamed = 3;

// Lines with the names of the runs of `some` that are not among `others`.
std::string missing_names(const Sweep& some, const Sweep& others, std::string_view where) {
  std::set<std::string> known;
  for (const RunConfig& run : others.runs) known.insert(run.name);
  std::vector<std::string> names;
  for (const RunConfig& run : some.runs) {
    if (!known.contains(run.name)) names.push_back(run.name);
  }
  if (names.empty()) return "";
  return fmt::format("\n  only {}: {}", where, first_names(names));
}

std::string difference_of(const RunConfig& theirs, const RunConfig& ours, RunKind& kind) {
  if (theirs.epochs != ours.epochs) return fmt::format("epochs: {} -> {}", theirs.epochs, ours.epochs);
  return to_string(differences(kind.request(theirs).identity, kind.request(ours).identity));
}

constexpr std::size_t kMaxFiles = 3;
constexpr std::size_t kShownDigits = 12;  // of a digest

fs::path inputs_path(const fs::path& directory) { return directory / kInputsFile; }

// The first run of each data set and file of weights.
std::vector<const RunConfig*> runs_with_own_inputs(const Sweep& sweep) {
  std::vector<const RunConfig*> runs;
  for (const RunConfig& run : sweep.runs) {
    const bool is_known = std::ranges::any_of(runs, [&run](const RunConfig* known) {
      return known->dataset == run.dataset && known->init == run.init;
    });
    if (!is_known) runs.push_back(&run);
  }
  return runs;
}

std::string difference(const std::string& path, const std::string& there, const std::string& here) {
  return fmt::format("\n  {}: SHA-256 {}… there, {}… here", path, there.substr(0, kShownDigits),
                     here.substr(0, kShownDigits));
}

// {"path", "sha256"} each; throws Json::exception if they are not.
void add_differences(const Json& there, const Json& here, std::set<std::string>& found) {
  if (there.size() != here.size())
    found.insert(fmt::format("\n  {} files there, {} here", there.size(), here.size()));
  for (std::size_t i = 0; i < std::min(there.size(), here.size()); ++i) {
    const auto theirs = there.at(i).at("sha256").get<std::string>();
    const auto ours = here.at(i).at("sha256").get<std::string>();
    if (theirs != ours) found.insert(difference(here.at(i).at("path").get<std::string>(), theirs, ours));
  }
}

}  // namespace

void check_can_be_joined(const Sweep& sweep, const RunnerOptions& options) {
  if (options.leave && !options.join) throw ConfigError("--leave: is for --join, which was not given");
  if (!options.join) return;
  if (options.fresh)
    throw ConfigError(
        "--fresh: each process would make a directory of its own, so none could --join another; "
        "give the sweep another name: name=NAME");
  if (options.replace)
    throw ConfigError(
        "--replace: others that --join might be training what would be replaced; start once with "
        "--replace and without --join, and stop it: the runs in the way are set aside then");
  if (sweep.search && sweep.search->seconds)
    throw ConfigError(
        fmt::format("{}: search: \"seconds\" are the time of all runs, which one process has to watch; "
                    "--join is for searches without it",
                    sweep.file.string()));
}

void check_locks_reach(const fs::path& directory) {
  std::string mounts;
  try {
    mounts = read_file("/proc/self/mounts");
  } catch (const DataError&) {
    return;
  }
  const std::string why = why_locks_are_local(mounts, fs::canonical(directory));
  if (why.empty()) return;
  throw ConfigError(
      fmt::format("--join: {}: {}, so two machines could train the same run without a notice; use a --logdir "
                  "whose locks hold on all machines, or start without --join",
                  directory.string(), why));
}

std::string differences_from_sweep_file(const fs::path& directory, const Sweep& sweep, RunKind& kind) {
  const fs::path file = directory / kSweepFile;
  std::error_code error;
  if (!fs::exists(file, error)) return "\n  there is no " + file.string();
  const std::string name = "name=" + directory.filename().string();
  const Sweep theirs = load_sweep(file, std::span(&name, 1));
  std::string text =
      missing_names(theirs, sweep, "in " + file.string()) + missing_names(sweep, theirs, "asked for now");
  if (!text.empty()) return text;
  std::size_t different = 0;
  for (std::size_t i = 0; i < sweep.runs.size() && different <= kMaxNamed; ++i) {
    const auto run = std::ranges::find(theirs.runs, sweep.runs[i].name, &RunConfig::name);
    const std::string difference = difference_of(*run, sweep.runs[i], kind);
    if (!difference.empty() && ++different <= kMaxNamed)
      text += fmt::format("\n  {}: {}", sweep.runs[i].name, difference);
  }
  return different <= kMaxNamed ? text : text + "\n  and more";
}

void write_inputs(const fs::path& directory, const Sweep& sweep, RunKind& kind) {
  Json list = Json::array();
  for (const RunConfig* run : runs_with_own_inputs(sweep))
    list.push_back({{"run", run->name}, {"files", kind.input_files(*run)}});
  write_file_atomically(inputs_path(directory), json_text(list));
}

std::string differences_from_inputs(const fs::path& directory, const Sweep& sweep, RunKind& kind) {
  std::error_code error;
  if (!fs::exists(inputs_path(directory), error)) return "";
  std::set<std::string> found;
  try {
    for (const Json& entry : read_json_file(inputs_path(directory))) {
      const auto run = std::ranges::find(sweep.runs, entry.at("run").get<std::string>(), &RunConfig::name);
      if (run != sweep.runs.end()) add_differences(entry.at("files"), kind.input_files(*run), found);
    }
  } catch (const Json::exception&) {
    return "";  // What a power cut has left of it.
  }
  std::string text;
  std::size_t named = 0;
  for (const std::string& line : found) {
    if (++named <= kMaxFiles) text += line;
  }
  return named <= kMaxFiles ? text : text + fmt::format("\n  and {} more", named - kMaxFiles);
}

}  // namespace sweep
