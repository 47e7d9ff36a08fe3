#include "runmanager/sweep/joined_start.h"

#include <fmt/format.h>

#include <set>
#include <vector>

#include "core/base/error.h"
#include "core/base/file.h"
#include "runmanager/records/earlier_starts/sweep_changes.h"
#include "runmanager/records/lock_file.h"
#include "runmanager/records/run_files.h"
#include "runmanager/records/run_identity.h"
#include "runmanager/sweepfile/sweep_file.h"

namespace sweep {
namespace {

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

void check_locks_reach(const std::filesystem::path& directory) {
  std::string mounts;
  try {
    mounts = read_file("/proc/self/mountinfo");
  } catch (const DataError&) {
    return;
  }
  const std::string why = why_locks_are_local(mounts, std::filesystem::canonical(directory));
  if (why.empty()) return;
  throw ConfigError(
      fmt::format("--join: {}: {}, so two machines could train the same run without a notice; use a --logdir "
                  "whose locks hold on all machines, or start without --join",
                  directory.string(), why));
}

std::string differences_from_sweep_file(const std::filesystem::path& directory, const Sweep& sweep,
                                        RunKind& kind) {
  const std::filesystem::path file = directory / kSweepFile;
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return "\n  there is no " + file.string();
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

}  // namespace sweep
