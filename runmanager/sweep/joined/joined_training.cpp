// How a sweep is trained together with other processes.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "runmanager/records/earlier_starts/replaced_runs.h"
#include "runmanager/records/earlier_starts/sweep_changes.h"
#include "runmanager/records/ended_runs.h"
#include "runmanager/records/run_files.h"
#include "runmanager/records/run_record_json.h"
#include "runmanager/sweep/joined/joined_inputs.h"
#include "runmanager/sweep/joined/joined_start.h"
#include "runmanager/sweep/sweep_runner_steps.h"

namespace sweep {

SweepOutcome SweepRunner::run_joined() {
  kind_->load(sweep_);
  kind_->check(sweep_);
  directory_.emplace(SweepDirectory::join(options_.logdir, sweep_.name));
  joined_.emplace(directory_->path());
  make_records();
  if (joined_->join([this] { set_up_joined(); }, environment_.stop_requested)) {
    prepare();
    train_runs();
  }
  return conclude();
}

void SweepRunner::set_up_joined() {
  const bool retries = options_.retry_failed && joined_->is_first_of_job();
  Others others = joined_->others();
  if (others != Others::kNone) {
    const std::string settings = differences_from_sweep_file(directory_->path(), sweep_, *kind_);
    const std::string inputs = differences_from_inputs(directory_->path(), sweep_, *kind_);
    const std::string differences = settings + inputs;
    // Those that failed are tried again by who comes when the others have gone.
    const bool may_stay_unknown = differences.empty() && !(retries && has_failed_runs());
    if (others == Others::kUnknown && !may_stay_unknown)
      others = joined_->certain_others(environment_.stop_requested);
    if (others != Others::kNone && differences.empty()) return;
    if (others != Others::kNone && settings.empty())
      throw ConfigError(
          fmt::format("{}: others train it with other data there:{}\nWho trains a run must not change its "
                      "results: use the same data, or another name: name=NAME",
                      directory_->path().string(), inputs));
    if (others != Others::kNone)
      throw ConfigError(fmt::format(
          "{}: others train a sweep with other runs there:{}\nTo work with them, use the same sweep "
          "file, or: sweep resume {} --join",
          directory_->path().string(), settings, directory_->path().string()));
  }
  remove_temporaries(directory_->path());
  joined_->runs().remove_temporaries();
  for (const RunConfig& run : sweep_.runs) {
    joined_->runs().look_at(run.name);
    if (joined_->runs().is_unsettled(run.name)) settle_run(directory_->path(), joined_->runs(), run.name);
  }
  find_existing();
  changes_ = changes_since(directory_->path(), sweep_.runs, existing_);
  make_room(directory_->path(), sweep_.runs, existing_);
  for (std::size_t i = 0; i < sweep_.runs.size(); ++i) {
    const std::string& name = sweep_.runs[i].name;
    if (kept_[i] || joined_->runs().state(name) != ChainState::kEnded) continue;
    if (retries || !ended_failed(name)) joined_->runs().reopen(name);
  }
  joined_->mark_job();
  write_inputs(directory_->path(), sweep_, *kind_);
  write_sweep_file();
}

bool SweepRunner::has_failed_runs() {
  return std::ranges::any_of(sweep_.runs, [this](const RunConfig& run) {
    return joined_->runs().state(run.name) == ChainState::kEnded && ended_failed(run.name);
  });
}

bool SweepRunner::ended_failed(const std::string& run) {
  try {
    const std::optional<ChainEnd> end = joined_->runs().read_end(run);
    return end && parse_run_record(end->content, run).status == RunStatus::kFailed;
  } catch (const DataError&) {
    return false;
  }
}

std::function<void()> SweepRunner::refresh() {
  if (!joined_) return {};
  return [this] {
    for (ClaimedRuns* runs : claimed_) runs->collect();
  };
}

void SweepRunner::train_with_others(SweepRecorder& recorder) {
  std::deque<ScheduledRun> unavailable = unavailable_runs(), runs = runs_to_train();
  const auto finished = [this](std::size_t run) { return finished_record(run); };
  ClaimedRuns here(*joined_, runs, recorder,
                   {.slots = slots_for(runs.size()),
                    .leaves = options_.leave,
                    .most = options_.most_runs,
                    .takes = options_.takes,
                    .finished = finished});
  ClaimedRuns elsewhere(
      *joined_, unavailable, recorder,
      {.slots = 1, .leaves = options_.leave, .takes = options_.takes, .finished = finished});
  // An error that leaves this function ends with the results saved once more, which must not ask them then.
  struct Forget {
    std::vector<ClaimedRuns*>& runs;
    ~Forget() { runs.clear(); }
  } const forget{claimed_};
  claimed_ = {&here, &elsewhere};
  if (!runs.empty()) train(here, runs, runs.size(), recorder);
  // A process that does not wait for others cannot know what they have: a node whose device is broken would
  // skip the runs of all.
  if (!unavailable.empty() && options_.leave)
    recorder.progress().message(
        fmt::format("{} of the runs cannot be trained here and are left to others: {}", unavailable.size(),
                    *unavailable.front().prepared.unavailable));
  else if (!unavailable.empty())
    leave_to_others(elsewhere, recorder);
  joined_->write_results([&] {
    do {
      recorder.finish();
    } while (here.collect() + elsewhere.collect() > 0);
    recorder.write_means();
  });
}

std::optional<RunRecord> SweepRunner::finished_record(std::size_t run) {
  const RunConfig& config = sweep_.runs[run];
  const RequestedRun request = kind_->request(config);
  const ExistingRun existing = find_existing_run(directory_->path(), request, options_.retry_failed);
  refuse_runs_in_the_way(directory_->path(), {&request, 1}, {&existing, 1});
  return existing.fate == RunFate::kKept ? known_record(existing, config) : std::nullopt;
}

std::deque<ScheduledRun> SweepRunner::unavailable_runs() {
  std::deque<ScheduledRun> runs;
  for (std::size_t i = 0; i < prepared_.size(); ++i) {
    if (prepared_[i].config != nullptr && prepared_[i].unavailable) runs.push_back({i, prepared_[i], 0});
  }
  return runs;
}

void SweepRunner::leave_to_others(ClaimedRuns& runs, SweepRecorder& recorder) {
  constexpr std::chrono::milliseconds kBetweenLooks(500);
  joined_->set_idle();
  for (;;) {
    const Others others = joined_->others();
    const std::vector<const ScheduledRun*> claimed =
        others == Others::kNone ? runs.take_ready() : std::vector<const ScheduledRun*>();
    for (const ScheduledRun* run : claimed) {
      skip(recorder, run->run, run->prepared);
      runs.settle(run->run, recorder.record(run->run));
      runs.end(run->run);
    }
    runs.collect();
    if (!claimed.empty()) continue;
    if (!runs.has_open() || environment_.stop_requested() != 0) return;
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

}  // namespace sweep
