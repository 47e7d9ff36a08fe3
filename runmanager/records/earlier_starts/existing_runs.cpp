#include "runmanager/records/earlier_starts/existing_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <set>
#include <system_error>
#include <utility>

#include "core/base/enum_names.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/json/json_text.h"
#include "runmanager/records/checkpoint.h"
#include "runmanager/records/earlier_starts/replaced_runs.h"
#include "runmanager/records/run_files.h"
#include "runmanager/records/run_record_json.h"
#include "tbwriter/event_files.h"
#include "tbwriter/event_reader.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

// Runs that a message names one by one; of more it says how many there are.
constexpr std::size_t kMaxNamed = 5;

// Throws ReadError if that cannot be told, as in a directory without permission.
bool is_there(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  const bool is_no_path =
      error == std::errc::too_many_symbolic_link_levels || error == std::errc::filename_too_long;
  if (!fs::status_known(status) && !is_no_path) throw ReadError(path.string() + ": " + error.message());
  return fs::exists(status);
}

// The record in a run's directory. Where run.json cannot be read, a whole checkpoint tells which run it is of
// and how far it got: without it, a finished run with other settings would be taken for nothing.
std::optional<RunRecord> read_record(const fs::path& run_directory) {
  using Reader = RunRecord (*)(const fs::path&);
  std::vector<std::pair<std::string, Reader>> sources = {{kRunRecordFile, read_run_record},
                                                         {kCheckpointFile, read_checkpoint_record},
                                                         {kPreviousCheckpointFile, read_checkpoint_record}};
  for (const auto& [name, read] : sources) {
    if (!is_there(run_directory / name)) continue;
    // One that cannot be read may be a finished run; of damaged ones the next may be whole.
    if (auto record = whole_record(read, run_directory / name)) return record;
  }
  return std::nullopt;
}

// Whether an earlier start computed something that a new start would remove.
bool has_results(const RunRecord& record, const fs::path& run_directory) {
  return record.status == RunStatus::kCompleted || record.status == RunStatus::kFailed ||
         !record.epochs.empty() || is_there(run_directory / kCheckpointFile);
}

// What is wrong with the files of a finished run, or "". A power cut can leave run.json without the data that
// it speaks of, so existence is not enough.
std::string damage_of(const fs::path& run_directory, const RunRecord& record) {
  try {
    for (const auto& [name, bytes] : record.event_files) {
      std::error_code error;
      const std::uintmax_t size = fs::file_size(run_directory / name, error);
      if (error == std::errc::no_such_file_or_directory) return fmt::format("{} is missing", name);
      if (error) throw ReadError((run_directory / name).string() + ": " + error.message());
      if (size < bytes) return fmt::format("{} has {} bytes instead of {}", name, size, bytes);
    }
    if (tbwriter::list_event_files(run_directory).empty()) return "its events file is missing";
    for (const std::string& file : own_event_files(run_directory)) {
      const tbwriter::FileCheck check = tbwriter::check_events_file(run_directory / file);
      if (check.end != tbwriter::ReadEnd::kEnd || check.records == 0)
        return fmt::format("{} is damaged", file);
    }
    if (is_there(run_directory / kCheckpointFile))
      read_checkpoint_record(run_directory / kCheckpointFile);
    else if (has_checkpoint(record))
      return fmt::format("{} is missing", kCheckpointFile);
    if (record.best_epoch && whole_checkpoint_epoch(run_directory / kBestFile) != record.best_epoch)
      return fmt::format("{} is not that of its best epoch, or damaged", kBestFile);
    return "";
  } catch (const ReadError&) {
    throw;
  } catch (const DataError& error) {
    return error.what();
  }
}

// Whether a finished run with damaged files need not be trained from the start.
bool can_go_on(const fs::path& run_directory, const RunRecord& record) {
  if (!has_checkpoint(record)) return true;
  return has_best_epoch(record, run_directory) &&
         (whole_checkpoint_epoch(run_directory / kCheckpointFile) ||
          whole_checkpoint_epoch(run_directory / kPreviousCheckpointFile));
}

// Settings such as num_workers change no number, but they are swept to compare times or files. A run has to
// have been trained with the value that its name or its row of the results tells.
std::vector<SettingDifference> swept_differences(const RunRecord& record, const RunConfig& config,
                                                 const Params& swept) {
  std::vector<SettingDifference> differences;
  for (const auto& [key, value] : swept) {
    if (!changes_only_times(key)) continue;
    const nlohmann::ordered_json settings = config.resolved;
    const auto *before = find_at(record.config, key), *now = find_at(settings, key);
    if (before == now || (before != nullptr && now != nullptr && *before == *now)) continue;
    const auto text = [](const nlohmann::ordered_json* json) { return json ? json->dump() : "nothing"; };
    differences.push_back({key, text(before), text(now)});
  }
  return differences;
}

bool has_swept_values(const RunRecord& record, const RunConfig& config) {
  return swept_differences(record, config, record.params).empty() &&
         swept_differences(record, config, config.params).empty();
}

// What a finished run of a program was made with that is not asked for now, though it makes no other run.
std::string stale_settings(const nlohmann::ordered_json& before, const RunConfig& config) {
  if (!config.command) return "";
  const nlohmann::ordered_json now = config.resolved;
  const auto text_of = [](const nlohmann::ordered_json& json, const char* key) {
    const auto* const value = find_at(json, key);
    return value != nullptr ? value->dump() : "";
  };
  std::vector<std::string> texts;
  if (const std::string cwd = text_of(before, "cwd"); cwd != text_of(now, "cwd"))
    texts.push_back("was run in " + cwd);
  if (text_of(before, "metrics") != text_of(now, "metrics"))
    texts.push_back("has the metrics that other expressions found");
  if (texts.empty()) return "";
  return fmt::format("{}; it stays as it is, --fresh runs the program anew", fmt::join(texts, " and "));
}

// Decides about a run whose directory is `directory`, below the sweep's.
ExistingRun decide(const fs::path& sweep_directory, const std::string& directory, const RunConfig& run,
                   const RunIdentity& identity, bool retry_failed) {
  const fs::path run_directory = sweep_directory / directory;
  std::optional<RunRecord> record = read_record(run_directory);
  if (!record || !has_results(*record, run_directory)) return {.directory = directory};
  ExistingRun existing{.directory = directory};
  const RunIdentity before = identity_of(*record);
  existing.differences = differences(before, identity);
  for (SettingDifference& difference : swept_differences(*record, run, run.params))
    existing.differences.push_back(std::move(difference));
  const std::size_t epochs = record->epochs.size();
  const bool completed = record->status == RunStatus::kCompleted;
  const auto wanted = static_cast<std::size_t>(identity.epochs);
  if (!existing.differences.empty()) {
    existing.fate = RunFate::kInTheWay;
  } else if (completed && (epochs >= wanted || !record->stop_reason.empty())) {
    const std::string damage = damage_of(run_directory, *record);
    existing.fate = damage.empty()                      ? RunFate::kKept
                    : can_go_on(run_directory, *record) ? RunFate::kContinued
                                                        : RunFate::kNew;
    if (!damage.empty())
      existing.note = fmt::format("was finished, but {}{}", damage,
                                  existing.fate == RunFate::kNew ? "; it is trained from the start" : "");
    else if (epochs > wanted && wanted > 0)  // 0: as many as a program reports
      existing.note = fmt::format("has {}, {} asked for; it stays as it is", counted(epochs, "epoch"),
                                  wanted == 1 ? "1 is" : fmt::format("{} are", wanted));
    else if (run.evaluate_first && !record->untrained)
      existing.note = "has no epoch 0, which evaluate_first asks for; it stays as it is";
    else if (keeps_best(run) && !record->best_epoch)
      existing.note = fmt::format("has no {}, which checkpoint asks for; it stays as it is", kBestFile);
    else
      existing.note = stale_settings(record->config, run);
  } else if (record->status == RunStatus::kFailed && !retry_failed) {
    existing.fate = RunFate::kKept;
  } else {
    existing.fate = RunFate::kContinued;
    // A checkpoint's weights are called by the layers' names, so it cannot be read under others.
    if (before.layers != identity.layers) {
      existing.fate = RunFate::kInTheWay;
      existing.differences.push_back({"names of layers", fmt::format("{}", fmt::join(before.layers, " ")),
                                      fmt::format("{}", fmt::join(identity.layers, " "))});
    } else if (epochs > 0 && keeps_best(run) && !is_there(run_directory / kBestFile)) {
      existing.note = fmt::format("was begun without one, so it leaves no {}", kBestFile);
    } else if (!keeps_best(run) && record->best_epoch) {
      existing.note = fmt::format("loses its {}: checkpoint is \"last\" now", kBestFile);
    }
  }
  existing.record = std::move(record);
  return existing;
}

// Whether an earlier version named the run, with the JSON of a list or an object in it.
bool is_former_name(const std::string& name) {
  return name.find("=%5B") != std::string::npos || name.find("=%7B") != std::string::npos;
}

// A run that earlier starts left under a name that no requested run has.
struct Unclaimed {
  std::string directory;
  RunRecord record;
  RunIdentity identity;
};

struct UnclaimedRuns {
  std::vector<Unclaimed> runs;
  std::exception_ptr unreadable;  // why one that is there cannot be read, if there is any
};

// `may_be`: whether a run of this name may be one.
UnclaimedRuns unclaimed_runs(const fs::path& sweep_directory,
                             const std::function<bool(const std::string&)>& may_be) {
  UnclaimedRuns unclaimed;
  for (const fs::directory_entry& entry : directory_entries(sweep_directory)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_symlink() || !entry.is_directory() || !may_be(name) || is_replaced_name(name)) continue;
    std::optional<RunRecord> record;
    try {
      record = read_record(entry.path());
    } catch (const ReadError&) {
      unclaimed.unreadable = std::current_exception();
      continue;
    }
    if (!record || !has_results(*record, entry.path())) continue;
    RunIdentity identity = identity_of(*record);
    unclaimed.runs.push_back({name, std::move(*record), std::move(identity)});
  }
  // By name, so that the choice between equals does not depend on the file system; finished ones first.
  std::ranges::sort(unclaimed.runs, {}, [](const Unclaimed& run) {
    return std::pair(run.record.status != RunStatus::kCompleted, run.directory);
  });
  return unclaimed;
}

// The run under the name that it has among `unclaimed`, which it then leaves; of kNew if it is not there.
// Throws ReadError if it may be one that cannot be read: a finished run is not trained again next to itself.
ExistingRun adopt(const fs::path& sweep_directory, const RunConfig& run, const RunIdentity& identity,
                  UnclaimedRuns& unclaimed, bool retry_failed) {
  const auto found = std::ranges::find_if(unclaimed.runs, [&](const Unclaimed& candidate) {
    return has_swept_values(candidate.record, run) && differences(candidate.identity, identity).empty();
  });
  if (found == unclaimed.runs.end()) {
    if (unclaimed.unreadable) std::rethrow_exception(unclaimed.unreadable);
    return {};
  }
  ExistingRun existing = decide(sweep_directory, found->directory, run, identity, retry_failed);
  if (existing.fate == RunFate::kInTheWay) return {};
  unclaimed.runs.erase(found);
  return existing;
}

// "lr: 0.01 -> 0.1" of each run, or once if it is the same for all.
std::string differences_text(std::span<const RunConfig> runs, std::span<const ExistingRun> existing) {
  std::set<std::string> texts;
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < existing.size(); ++i) {
    if (existing[i].fate != RunFate::kInTheWay) continue;
    const std::string text = to_string(existing[i].differences);
    texts.insert(text);
    lines.push_back(fmt::format("{}: {}", runs[i].name, text));
  }
  if (texts.size() == 1) return "\n  " + *texts.begin();
  const std::size_t unnamed = lines.size() - std::min(lines.size(), kMaxNamed);
  lines.resize(lines.size() - unnamed);
  if (unnamed > 0) lines.push_back(fmt::format("and {} more", unnamed));
  return fmt::format("\n  {}", fmt::join(lines, "\n  "));
}

}  // namespace

std::string_view to_string(RunFate fate) {
  static const EnumNames<RunFate> names("fate", {"new", "kept", "continued", "in the way"});
  return names.of(fate);
}

std::vector<ExistingRun> find_existing_runs(const fs::path& sweep_directory, std::span<const RunConfig> runs,
                                            const IdentityOf& identity, bool retry_failed, Adopted adopted) {
  const bool only_former = adopted == Adopted::kFormerNames;
  const auto had_another_name = [](const auto& param) { return is_json_text(param.second); };
  std::set<std::string> claimed;
  for (const RunConfig& run : runs) claimed.insert(run.name);
  std::vector<ExistingRun> existing(runs.size());
  std::vector<std::pair<std::size_t, RunIdentity>> missing;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const bool exists = is_there(sweep_directory / runs[i].name);
    if (!exists && only_former && std::ranges::none_of(runs[i].params, had_another_name)) continue;
    RunIdentity wanted = identity(runs[i]);
    if (exists)
      existing[i] = decide(sweep_directory, runs[i].name, runs[i], wanted, retry_failed);
    else
      missing.emplace_back(i, std::move(wanted));
  }
  if (missing.empty()) return existing;
  // A new axis gives all runs other names. Those whose value equals the old implicit one are there already.
  UnclaimedRuns unclaimed = unclaimed_runs(sweep_directory, [&](const std::string& name) {
    return only_former ? is_former_name(name) : !claimed.contains(name);
  });
  for (const auto& [i, wanted] : missing)
    existing[i] = adopt(sweep_directory, runs[i], wanted, unclaimed, retry_failed);
  return existing;
}

void refuse_runs_in_the_way(const fs::path& sweep_directory, std::span<const RunConfig> runs,
                            std::span<const ExistingRun> existing) {
  const auto count = std::count_if(existing.begin(), existing.end(),
                                   [](const ExistingRun& run) { return run.fate == RunFate::kInTheWay; });
  if (count == 0) return;
  throw ConfigError(fmt::format(
      "{}: {} there {} other settings than {} asked for now:{}\nNothing was changed. --replace trains {} "
      "again, and "
      "removes the old {} when the new {} finished;\n--fresh trains in a new directory and leaves this one "
      "as it is.",
      sweep_directory.string(), counted(static_cast<std::size_t>(count), "run"), count == 1 ? "has" : "have",
      count == 1 ? "is" : "are", differences_text(runs, existing), count == 1 ? "it" : "them",
      count == 1 ? "run" : "runs", count == 1 ? "one has" : "ones have"));
}

}  // namespace sweep
