#include "runmanager/inspect/watch.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "runmanager/inspect/run_listing.h"
#include "runmanager/inspect/sweep_status.h"
#include "runmanager/records/sweep_directory.h"
#include "runmanager/sweepfile/search_reader.h"
#include "runmanager/terminal/live_sweep.h"
#include "runmanager/terminal/terminal.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

// How many runs that have ended before are shown at first.
constexpr std::size_t kEndedAtFirst = 5;

constexpr int kLogWidth = 10000;

LiveRun live_run(const RunRecord& record, std::size_t number) {
  LiveRun run{.number = number, .name = record.name, .params = record.params, .has_begun = true};
  for (const char* key : {"epochs", "reports"}) {
    const auto epochs = record.config.find(key);
    if (epochs != record.config.end() && epochs->is_number_integer()) run.epochs = epochs->get<int>();
  }
  run.finished_epochs = static_cast<int>(record.epochs.size());
  if (!record.epochs.empty()) run.last = record.epochs.back();
  return run;
}

class Watch {
 public:
  Watch(const fs::path& directory, const WatchOptions& options)
      : directory_(directory),
        options_(options),
        region_(options.terminal),
        log_(options.terminal),
        recorded_(fs::weakly_canonical(directory).filename().string()) {
    log_.width = [] { return kLogWidth; };
  }

  void run() {
    while (!options_.stop_requested()) {
      // In this order: a sweep that ends in between is noticed the next time.
      const WatchedElsewhere elsewhere = options_.elsewhere();
      const bool is_held = SweepDirectory::is_held(directory_);
      line_ = elsewhere.line;
      if (const auto sweep = is_held ? read_progress(directory_) : std::nullopt) {
        show(*sweep);
      } else if (is_held || elsewhere.lives) {
        show_records();
      }
      // What is known of tasks may be a minute old.
      if (!is_held && (!elsewhere.lives || all_ended_)) break;
      options_.wait();
    }
    if (shown_ends_) show_last_ends();
    region_.clear();
    if (options_.tells_end && !options_.stop_requested()) tell_end();
  }

 private:
  // Several processes train it, or waiting tasks will; each knows only its own runs. A sweep that has just
  // begun has no records yet.
  void show_records() {
    const Clock::time_point begin = Clock::now();
    if (begin < next_records_ || !has_runs(directory_)) return;
    const RecordedSweep sweep = read_sweep(directory_);
    const LiveSweep& live = recorded_.update(sweep.runs, goals_of(sweep), trials_to_come(sweep.file));
    all_ended_ = options_.is_done ? options_.is_done(sweep.runs) : live.finished() == sweep.runs.size();
    show(live);
    next_records_ = begin + kRestPerReading * (Clock::now() - begin);
  }

  // The sweep is gone with what it could have told of the last ends.
  void show_last_ends() {
    const RecordedSweep sweep = read_sweep(directory_);
    LiveSweep live = recorded_.update(sweep.runs, goals_of(sweep));
    live.ends = *shown_ends_ + live.finished() - std::min(live.finished(), shown_finished_);
    if (live.ends > *shown_ends_) show(live);
  }

  void show(const LiveSweep& sweep) {
    if (options_.quiet) return;
    shown_ends_ = sweep.ends;
    shown_finished_ = sweep.finished();
    if (options_.json) {
      const Json json = to_json(sweep);
      if (json != last_json_) write_json({{"event", "progress"}, {"progress", json}});
      last_json_ = json;
    } else if (options_.terminal.interactive) {
      std::string above;
      for_each_new_end(
          sweep, [&](const RunRecord& run) { above += ended_line(sweep, run, options_.terminal) + "\n"; });
      std::vector<std::string> lines = live_table(sweep, options_.terminal);
      if (!line_.empty()) lines.push_back(line_);
      region_.draw(lines, above);
    } else {
      log(sweep);
    }
  }

  // Calls visit(run) for those that have ended since the last time.
  template <typename Visit>
  void for_each_new_end(const LiveSweep& sweep, const Visit& visit) {
    const std::size_t news =
        ends_ ? sweep.ends - std::min(sweep.ends, *ends_) : std::min(sweep.ends, kEndedAtFirst);
    ends_ = sweep.ends;
    const std::size_t shown = std::min(news, sweep.latest.size());
    for (std::size_t i = sweep.latest.size() - shown; i < sweep.latest.size(); ++i) {
      const RunRecord& run = sweep.latest[i];
      // Many runs are skipped for one reason.
      if (run.status == RunStatus::kSkipped && std::exchange(last_skip_, run.error.value_or("")) == run.error)
        continue;
      visit(run);
    }
  }

  void log(const LiveSweep& sweep) {
    std::string text;
    for (const auto& [number, run] : sweep.active) {
      const int finished = run.last ? run.last->epoch : 0;
      if (finished == 0 || std::exchange(logged_epochs_[number], finished) == finished) continue;
      text += epoch_line(sweep, run, *run.last) + "\n";
    }
    for_each_new_end(sweep, [&](const RunRecord& run) { text += ended_line(sweep, run, log_) + "\n"; });
    if (!text.empty()) options_.terminal.write(text);
  }

  void tell_end() {
    const SweepStatus status = sweep_status(directory_);
    if (options_.json) {
      write_json({{"event", "end"}, {"status", to_json(status)}});
    } else {
      options_.terminal.write(status_text(status, options_.terminal));
    }
  }

  void write_json(const Json& json) const {
    options_.terminal.write(json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  }

  const fs::path directory_;
  const WatchOptions& options_;
  LiveRegion region_;
  Terminal log_;                              // where lines may have any length
  RecordedProgress recorded_;                 // where no process knows all of it
  bool all_ended_ = false;                    // of its runs
  Clock::time_point next_records_;            // when they are read again
  std::string line_;                          // WatchedElsewhere::line
  std::string last_skip_;                     // the reason of the last run that was skipped
  std::optional<std::size_t> ends_;           // LiveSweep::ends the last time
  std::optional<std::size_t> shown_ends_;     // likewise; none: nothing was shown yet
  std::size_t shown_finished_ = 0;            // LiveSweep::finished() then
  std::map<std::size_t, int> logged_epochs_;  // by the run's number
  Json last_json_;
};

}  // namespace

const LiveSweep& RecordedProgress::update(const std::vector<RunRecord>& runs, const Goals& goals,
                                          std::size_t trials) {
  live_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  live_.runs = std::max(runs.size(), trials);
  live_.work = static_cast<double>(live_.runs);
  live_.ended.clear();
  live_.active.clear();
  std::vector<std::size_t> newly_ended;
  ended_.resize(runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunRecord& run = runs[i];
    const bool ended = has_ended(run.status);
    if (ended) ++live_.ended[run.status];
    if (ended && !ended_[i]) newly_ended.push_back(i);
    ended_[i] = ended;  // One that failed may be trained again.
    if (run.status == RunStatus::kRunning) live_.active[i + 1] = live_run(run, i + 1);
  }
  live_.ended_work = static_cast<double>(std::ranges::count(ended_, true));
  if (!std::exchange(has_begun_, true)) live_.earlier_work = live_.ended_work;
  // UTC times of one format sort as texts.
  std::ranges::stable_sort(newly_ended, {}, [&runs](std::size_t i) { return runs[i].ended; });
  live_.ends += newly_ended.size();
  for (const std::size_t i : newly_ended) live_.latest.push_back(summary_of(runs[i]));
  while (live_.latest.size() > kLatestKept) live_.latest.pop_front();
  live_.best.reset();
  if (const auto best = best_run(runs, goals)) live_.best = summary_of(runs[*best]);
  return live_;
}

void watch_sweep(const fs::path& directory, const WatchOptions& options) { Watch(directory, options).run(); }

}  // namespace sweep
