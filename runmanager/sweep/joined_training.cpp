// How a sweep is trained together with other processes.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/json/json_text.h"
#include "runmanager/records/earlier_starts/existing_runs.h"
#include "runmanager/records/earlier_starts/replaced_runs.h"
#include "runmanager/records/earlier_starts/sweep_changes.h"
#include "runmanager/records/run_files.h"
#include "runmanager/sweep/sweep_runner_steps.h"
#include "runmanager/sweepfile/sweep_file.h"
#include "runmanager/text/json_output.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxNamed = 3;      // runs, or files
constexpr std::size_t kShownDigits = 12;  // of a digest

// The first of `lines`, each after a line break.
std::string first_lines(const std::vector<std::string>& lines) {
  std::string text;
  for (std::size_t i = 0; i < std::min(lines.size(), kMaxNamed); ++i) text += "\n  " + lines[i];
  return lines.size() > kMaxNamed ? text + "\n  and more" : text;
}

// A line with the names of the runs of `some` that are not among `others`; "" if there are none.
std::string missing_names(const Sweep& some, const Sweep& others, std::string_view where) {
  std::set<std::string> known;
  for (const RunConfig& run : others.runs) known.insert(run.name);
  std::vector<std::string> names;
  for (const RunConfig& run : some.runs) {
    if (!known.contains(run.name)) names.push_back(run.name);
  }
  return names.empty() ? "" : fmt::format("\n  only {}: {}", where, first_names(names));
}

std::string difference_of(const RunConfig& theirs, const RunConfig& ours, RunKind& kind) {
  if (theirs.epochs != ours.epochs) return fmt::format("epochs: {} -> {}", theirs.epochs, ours.epochs);
  return to_string(differences(kind.identity(theirs), kind.identity(ours)));
}

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

// Compares lists of {"path", "sha256"}. Throws Json::exception if they are none.
void add_differences(const Json& there, const Json& here, std::vector<std::string>& lines) {
  const auto add = [&lines](const std::string& line) {
    if (std::ranges::find(lines, line) == lines.end()) lines.push_back(line);
  };
  if (there.size() != here.size()) add(fmt::format("{} files there, {} here", there.size(), here.size()));
  for (std::size_t i = 0; i < std::min(there.size(), here.size()); ++i) {
    const std::string theirs = there.at(i).at("sha256"), ours = here.at(i).at("sha256");
    if (theirs != ours)
      add(fmt::format("{}: SHA-256 {}… there, {}… here", here.at(i).at("path").get<std::string>(),
                      theirs.substr(0, kShownDigits), ours.substr(0, kShownDigits)));
  }
}

// Throws ConfigError if a lock in `directory` holds on this machine only and others may have the directory.
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

// What a search decides by. The trials depend on all of it.
Json rules_of(const Sweep& sweep) {
  if (!sweep.search) return {{"search.method", "none"}};
  const SearchSpec& search = *sweep.search;
  Json goals = Json::array();
  for (const Goal& goal : search.goals)
    goals.push_back(fmt::format("{} of {}", goal.largest_is_best ? "max" : "min", goal.metric->key));
  Json rules = {{"search.method", search_method_names().of(search.method)},
                {"search.trials", search.trials},
                {"search.goals", std::move(goals)},
                {"search.seed", search.seed},
                {"search.sampler", search.samples_tpe ? "tpe" : "random"},
                {"search.at_once", search.at_once},
                {"search.min_epochs", search.min_epochs},
                {"search.reduction", search.reduction},
                {"search.interval", search.interval},
                {"search.target", search.target ? Json(*search.target) : Json()}};
  if (!adds_trials(search)) return rules;
  // Most of the trials that these give are not known yet.
  for (const char* const key : {"search.points", "search.learn_from", "params", "when", "exclude"}) {
    const Json* const value = find_at(sweep.resolved, key);
    rules[key] = value != nullptr ? *value : Json();
  }
  return rules;
}

// "search.trials: 9 -> 10", without values that are too long to be read.
std::string rule_line(const std::string& key, const Json& there, const Json& here) {
  constexpr std::size_t kMaxShown = 100;  // bytes
  const std::string before = there.dump(), now = here.dump();
  return before.size() + now.size() > kMaxShown ? key + ": is another"
                                                : fmt::format("{}: {} -> {}", key, before, now);
}

// What tells the runs of sweep.json in `directory` from those of `sweep`, by their names or by any setting
// that changes their numbers; "" if they are the same.
std::string differences_from_sweep_file(const fs::path& directory, const Sweep& sweep, RunKind& kind) {
  const fs::path file = directory / kSweepFile;
  std::error_code error;
  if (!fs::exists(file, error)) return "\n  there is no " + file.string();
  const std::string name = "name=" + directory.filename().string();
  const Sweep theirs = load_sweep(file, std::span(&name, 1));
  const std::string text =
      missing_names(theirs, sweep, "in " + file.string()) + missing_names(sweep, theirs, "asked for now");
  if (!text.empty()) return text;
  std::vector<std::string> lines;
  const Json there = rules_of(theirs), here = rules_of(sweep);
  for (const auto& [key, value] : here.items())
    if (there.value(key, Json()) != value) lines.push_back(rule_line(key, there.value(key, Json()), value));
  for (std::size_t i = 0; i < sweep.runs.size() && lines.size() <= kMaxNamed; ++i) {
    const auto run = std::ranges::find(theirs.runs, sweep.runs[i].name, &RunConfig::name);
    const std::string difference = difference_of(*run, sweep.runs[i], kind);
    if (!difference.empty()) lines.push_back(sweep.runs[i].name + ": " + difference);
  }
  return first_lines(lines);
}

// Leaves the digests of what the runs read here, for those who join later. `kind` has loaded the data.
void write_inputs(const fs::path& directory, const Sweep& sweep, RunKind& kind) {
  Json list = Json::array();
  for (const RunConfig* run : runs_with_own_inputs(sweep))
    list.push_back({{"run", run->name}, {"files", kind.input_files(*run)}});
  write_file_atomically(directory / kInputsFile, json_text(list));
}

// The differences between what the runs read here and where write_inputs() was called, as lines that each
// follow a line break; "" if there are none, or if that is not known. Paths need not be the same.
std::string differences_from_inputs(const fs::path& directory, const Sweep& sweep, RunKind& kind) {
  std::error_code error;
  if (!fs::exists(directory / kInputsFile, error)) return "";
  std::vector<std::string> lines;
  try {
    for (const Json& entry : read_json_file(directory / kInputsFile)) {
      const auto run = std::ranges::find(sweep.runs, entry.at("run").get<std::string>(), &RunConfig::name);
      if (run != sweep.runs.end()) add_differences(entry.at("files"), kind.input_files(*run), lines);
    }
  } catch (const Json::exception&) {
    return "";  // What a power cut has left of it.
  }
  return first_lines(lines);
}

// The tasks of a Slurm array are one start; else one begins where no process works on the sweep.
std::string new_start() {
  for (const char* name : {"SLURM_ARRAY_JOB_ID", "SLURM_JOB_ID"}) {
    if (const char* job = std::getenv(name); job != nullptr && *job != '\0') return job;
  }
  return random_id();
}

}  // namespace

void SweepRunner::check_can_be_joined() const {
  if (options_.leave && !options_.join) throw ConfigError("--leave: is for --join, which was not given");
  if (!options_.join) return;
  if (options_.fresh)
    throw ConfigError(
        "--fresh: each process would make a directory of its own, so none could --join another; "
        "give the sweep another name: name=NAME");
  if (options_.replace)
    throw ConfigError(
        "--replace: others that --join might be training what would be replaced; start once with "
        "--replace and without --join, and stop it: the runs in the way are set aside then");
  if (sweep_.search && sweep_.search->seconds)
    throw ConfigError(
        fmt::format("{}: search: \"seconds\" are the time of all runs, which one process has to watch; "
                    "--join is for searches without it",
                    sweep_.file.string()));
}

SweepOutcome SweepRunner::run_joined() {
  kind_->load(sweep_);
  kind_->check(sweep_);
  directory_.emplace(SweepDirectory::join(options_.logdir, sweep_.name));
  // Runs that no other process takes need no lock.
  if (!options_.takes) check_locks_reach(directory_->path());
  make_records();
  if (directory_->plan(
          new_start(), [this](bool alone) { plan_joined(alone); }, environment_.stop_requested)) {
    prepare();
    train_runs();
  }
  return conclude();
}

void SweepRunner::plan_joined(bool alone) {
  if (!alone) return check_is_same();
  if (!options_.takes) clean_up();
  find_existing();
  changes_ = changes_since(directory_->path(), sweep_.runs, existing_);
  make_room(directory_->path(), sweep_.runs, existing_);
  for (std::size_t i = 0; i < sweep_.runs.size(); ++i) {
    // That this start does not try them again holds for those that join it as well.
    if (!is_kept(i) || records_[i].status != RunStatus::kFailed) continue;
    if (auto lock = RunLock::try_lock(directory_->path() / sweep_.runs[i].name))
      lock->note_failure(directory_->start());
  }
  write_inputs(directory_->path(), sweep_, *kind_);
  write_sweep_file();
}

void SweepRunner::check_is_same() const {
  const std::string directory = directory_->path().string();
  if (const std::string runs = differences_from_sweep_file(directory_->path(), sweep_, *kind_); !runs.empty())
    throw ConfigError(fmt::format(
        "{}: others train a sweep with other runs there:{}\nTo work with them, use the same sweep "
        "file, or: {}",
        directory, runs, shell_command({typed_program(), "resume", "--join"}, directory_->path())));
  if (const std::string inputs = differences_from_inputs(directory_->path(), sweep_, *kind_); !inputs.empty())
    throw ConfigError(
        fmt::format("{}: others train it with other data there:{}\nWho trains a run must not change its "
                    "results: use the same data, or another name: name=NAME",
                    directory, inputs));
}

void SweepRunner::train_with_others() {
  std::optional<TrialRuns> trials;
  if (waits_for_results(sweep_)) trials.emplace(sweep_, runs_, *recorder_, trial_options());
  SharingOptions sharing{.slots = slots(),
                         .leaves = options_.leave,
                         .takes = options_.takes,
                         .start = directory_->start(),
                         .fate = [this](std::size_t run) { return fate_of(sweep_.runs[run]); }};
  RunQueue here(runs_, *recorder_, trials ? &*trials : nullptr, sharing);
  sharing.slots = 1;
  RunQueue elsewhere(unavailable_, *recorder_, nullptr, sharing);
  shared_queue_ = &here;
  train(here);
  // A process that does not wait for others cannot know what they have: a node whose device is broken would
  // skip the runs of all.
  if (!unavailable_.empty() && !options_.leave && !trials) {
    leave_to_others(elsewhere);
  } else if (!unavailable_.empty()) {
    recorder_->progress().message(
        fmt::format("{} of the runs cannot be trained here and are left to others: {}", unavailable_.size(),
                    *unavailable_.front().needs.unavailable));
  }
  if (trials) {
    // Adds the trials that the results of others give.
    here.collect();
    for (const ScheduledRun* run : trials->take_ready()) trials->end(run->run);
    end_search(*trials);
  }
  directory_->write_results([&] {
    do {
      here.collect();
      recorder_->finish();
    } while (here.collect() > 0);
    recorder_->write_means();
  });
  // What a process that was killed has left: the last one that works on the sweep removes it.
  directory_->stop_working();
  directory_->act_alone([this] { remove_temporaries(directory_->path()); });
}

RunFate SweepRunner::fate_of(const RunConfig& config) {
  const std::string failed_start = failed_start_of(directory_->path() / config.name);
  const bool retry_failed = options_.retry_failed && failed_start != directory_->start();
  return existing_runs({&config, 1}, retry_failed, Adopted::kFormerNames)[0].fate;
}

void SweepRunner::leave_to_others(RunQueue& runs) {
  constexpr std::chrono::milliseconds kBetweenLooks(500);
  directory_->stop_working();
  while (runs.has_open() && environment_.stop_requested() == 0) {
    directory_->act_alone([&] {
      for (std::vector<const ScheduledRun*> locked = runs.take_ready(); !locked.empty();
           locked = runs.take_ready()) {
        skip(*locked.front());
        runs.end(locked.front()->run);
      }
    });
    runs.collect();
    if (runs.has_open()) std::this_thread::sleep_for(kBetweenLooks);
  }
}

}  // namespace sweep
