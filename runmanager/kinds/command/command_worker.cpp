#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/child.h"
#include "core/base/file.h"
#include "runmanager/kinds/command/command_kind.h"
#include "runmanager/kinds/command/command_words.h"
#include "runmanager/kinds/command/metric_sources.h"
#include "runmanager/records/provenance.h"
#include "runmanager/records/recorded_config.h"
#include "runmanager/records/run_files.h"
#include "runmanager/records/run_record_json.h"
#include "runmanager/tensorboard/run_log.h"
#include "runmanager/training/epoch_watch.h"
#include "runmanager/training/log_file.h"
#include "runmanager/training/stop_signals.h"
#include "tbwriter/event_files.h"

namespace sweep {
namespace {

constexpr int kRunAgain = 75;   // EX_TEMPFAIL, as this program's own
constexpr int kMaxStarts = 50;  // of a program that asks for it
constexpr double kSecondsBetweenLooks = 0.2, kSecondsBetweenSaves = 1;
// After which a step is shown though no later one has begun. More may come: its validation takes a while.
constexpr double kSecondsOfStep = 1;
constexpr double kSecondsToStop = 1;  // from the end of a program by a signal until the sweep also has it
// TensorBoard's page of hyperparameters breaks at larger ones.
constexpr std::int64_t kMaxEventStep = (std::int64_t{1} << 31) - 1;

// How a run ends, as its record has it.
struct Ending {
  RunStatus status = RunStatus::kFailed;
  std::string error = {};  // why it is not complete
  std::string stop = {};   // why it is, if "stop" has ended it
};

// A search compares runs by the number of a report, which must not be left out.
std::size_t kept_steps(const RunConfig& config) {
  constexpr int kMin = 1000;
  return static_cast<std::size_t>(std::clamp(config.epochs, kMin, kMaxComparedReports));
}

// Does one run; used once.
class CommandRun {
 public:
  CommandRun(const WorkerTask& task, const ReportEvent& report, const TrainerOptions& options)
      : config_(task.config),
        spec_(*task.config.command),
        until_(static_cast<std::size_t>(task.until_epoch)),
        report_(report),
        options_(options),
        begin_(options.clock()),
        directory_(std::filesystem::absolute(options.directory / task.config.name)),
        lock_(lock_program(directory_, options)),
        record_(take_over_files(task, directory_, options)),
        run_begin_(begin_ - record_.run_seconds.value_or(0)),
        log_(directory_ / kLogFile, false),
        history_([this](std::int64_t step, const EpochRecord& values) { close_step(step, values); },
                 kept_steps(task.config), [this](std::int64_t step) { start_over(step); }),
        sources_(directory_, spec_) {
    open_events();
  }

  TrainedRun run() {
    read_earlier();
    for (int starts = 1; !ending_; ++starts) {
      const ProcessEnd end = run_once();
      if (ending_) break;
      if (end.kind != ProcessEnd::Kind::kExit || end.value != kRunAgain)
        ending_ = ending_of(end);
      else if (starts == kMaxStarts)
        ending_ = {.error =
                       fmt::format("asked {} times to be run again, by exit code {}", kMaxStarts, kRunAgain)};
    }
    return conclude(*ending_);
  }

 private:
  // That of a program which has ended by itself.
  Ending ending_of(const ProcessEnd& end) const {
    const std::string program = spec_.shell ? "the command" : spec_.words[0];
    if (end.kind == ProcessEnd::Kind::kNotStarted)
      return {.error = fmt::format(
                  "{} could not be started{}: {}{}", program, end.cwd ? " in its working directory" : "",
                  std::strerror(end.value),
                  end.value == ENOENT && !end.cwd ? ", or not the interpreter in its first line" : "")};
    if (const auto stopped = await_stop(end)) return *stopped;
    if (end.kind != ProcessEnd::Kind::kExit)
      return {.error = fmt::format("{} was {}", program, killed_by(end.value))};
    if (end.value != 0) return {.error = fmt::format("{} ended with exit code {}", program, end.value)};
    if (until_ > 0 && is_member(config_.resolved) && history_.size() >= until_) return waits();
    return {.status = RunStatus::kCompleted};
  }

  // A signal to all processes of a job may end the program before this worker is asked to stop.
  std::optional<Ending> await_stop(const ProcessEnd& end) const {
    constexpr int kOfShells = 128;  // plus the signal: exit code of a shell whose command it ended
    const int signal = end.kind == ProcessEnd::Kind::kSignal ? end.value : end.value - kOfShells;
    if (std::ranges::find(kStopSignals, signal) == kStopSignals.end()) return std::nullopt;
    const double until = options_.clock() + kSecondsToStop;
    std::optional<Ending> stopped;
    while (!(stopped = stop_asked()) && options_.clock() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return stopped;
  }

  std::optional<Ending> stop_asked() const {
    const int signal = options_.stop_requested();
    if (signal == 0) return std::nullopt;
    return Ending{.status = RunStatus::kInterrupted,
                  .error = fmt::format("stopped by {}", signal_name(signal))};
  }

  Ending waits() const {
    return {.status = RunStatus::kInterrupted, .error = fmt::format("waits after epoch {}", until_)};
  }

  // What earlier starts have reported.
  void read_earlier() {
    history_.know_times(record_.epochs);
    sources_.poll_file(use_);
    history_.end_attempt();  // The events are those of all.
    sources_.poll_events(use_);
    sources_.take_problems();  // Told by the start that has seen them first.
    history_.take_repeated();
    history_.close();
    if (const Lineage lineage = lineage_of(config_.resolved);
        !lineage.empty() && history_.size() < static_cast<std::size_t>(lineage.back().until))
      ending_ = {.error = fmt::format("{}, which it continues, has not written its metrics to "
                                      "$SWEEP_METRICS or its output, as a population needs",
                                      lineage.back().run)};
    begin_live();
  }

  void begin_live() {
    is_live_ = true;
    report_(RunPlan{.name = config_.name,
                    .epochs = config_.resolved.contains("reports") ? config_.epochs : 0,
                    .batches = 1,
                    .samples = 1,
                    .trained_epochs = static_cast<int>(history_.size()),
                    .finished_epochs = history_.epochs(),
                    .has_classes = false});
  }

  ProcessEnd run_once() {
    CommandStart start{.config = config_,
                       .run_directory = directory_,
                       .attempt = ++attempt_,
                       .threads = options_.threads(),
                       .gpus = record_.provenance.value(kGpusKey, std::vector<std::string>())};
    // After them a program of a population saves its state and ends by itself.
    if (is_member(config_.resolved)) start.until = until_ > 0 ? static_cast<int>(until_) : config_.epochs;
    write_file_atomically(directory_ / kParamsFile, params_text(config_), Survives::kKill);
    sources_.begin_attempt(attempt_);
    history_.begin_attempt();
    const std::vector<std::string> words = command_words(start);
    log_.info("attempt {}: {}", attempt_, shell_command(words));
    Child program({.words = words,
                   .environment = command_environment(start),
                   .directory = spec_.cwd == kRunCwd ? directory_ : spec_.cwd,
                   .group = ChildGroup::kKept});
    last_sign_ = options_.clock();
    next_look_ = next_save_ = 0;
    std::optional<ProcessEnd> end;
    for (;;) {
      program.wait(std::chrono::milliseconds(100));
      end = program.end();
      program.read([this](std::string_view text, bool is_error) {
        last_sign_ = options_.clock();
        log_.write_output(text);
        if (!is_error) sources_.add_output(text);
      });
      look(end.has_value());
      if (end) break;
      check_owner(options_.owner);
      if (!ending_) ending_ = reason_to_end();
      if (ending_) program.stop(options_.clock(), spec_.grace);
    }
    sources_.end_attempt();
    look(true);
    history_.close();
    sources_.restore(attempt_, history_.reported());
    log_.end_line();
    if (const auto step = history_.take_repeated())
      log_.warn(
          "step {} was reported again with other values, which do not count; does each epoch count its own "
          "steps, or do two sources (files of events, {}, output) report one metric?",
          *step, kMetricsFile);
    for (const auto& [what, problem] : sources_.take_problems()) log_.warn("{}: {}", what, problem);
    return *end;
  }

  // Follows files and the clock, as often as is worth it.
  void look(bool is_last) {
    const double now = options_.clock();
    if (now < next_look_ && !is_last) return;
    next_look_ = now + kSecondsBetweenLooks;
    sources_.poll_file(use_);
    sources_.poll_events(use_);
    if (now - last_report_ > kSecondsOfStep) history_.close();
    // What the program has left is in its files, and the record that says how it ended follows.
    if (now < next_save_ || is_last) return;
    next_save_ = now + kSecondsBetweenSaves;
    report_(RunPhase{"running"});
    check_owner(options_.owner);
    events_->flush();
    save(now);
  }

  void use(MetricReport report) {
    if (is_live_) {
      const double now = last_sign_ = last_report_ = options_.clock();
      const double age = report.wall_time > 0 ? seconds_since_1970() - report.wall_time : 0;
      report.seconds = std::clamp(now - age, begin_, now) - run_begin_;
    } else if (report.attempt > 0) {
      attempt_ = report.attempt;
      history_.begin_attempt();
    }
    for (auto& [metric, value] : report.values) {
      if (find_param(config_.params, metric->key) == nullptr || tells_position(*metric)) continue;
      const Metric& renamed = metric_apart(*metric);
      if (renamed_.insert(metric).second)
        log_.info("the metric {} is called {}, as there is a parameter {}", metric->key, renamed.key,
                  metric->key);
      metric = &renamed;
    }
    history_.add(std::move(report));
  }

  // Shows again the steps that stay, to all that follows them.
  void start_over(std::int64_t step) {
    const bool was_live = std::exchange(is_live_, false);
    if (was_live) {
      log_.info("starts over at step {}", step);
      sources_.start_over(history_.reported());
    }
    watch_ = make_epoch_watch(config_, true);
    open_events();
    history_.repeat();
    if (was_live) begin_live();
  }

  void close_step(std::int64_t step, const EpochRecord& values) {
    if (step > kMaxEventStep && !std::exchange(told_large_step_, true))
      log_.warn(
          "step {} is in the results, but not in the events: TensorBoard has steps up to {}; count in "
          "thousands, say",
          step, kMaxEventStep);
    const EpochRecord own = history_.not_in_events(step, values);
    if (step <= kMaxEventStep && !own.values.empty()) events_->epoch(own, std::nullopt, step);
    if (watch_) watch_->add(values);
    if (is_live_ && step == history_.last_step() && history_.keeps_last()) report_(history_.last());
  }

  std::optional<Ending> reason_to_end() const {
    const double now = options_.clock();
    if (auto stopped = stop_asked()) return stopped;
    if (until_ > 0 && history_.complete() >= until_) return waits();
    if (watch_ && watch_->has_ended())
      return Ending{.status = RunStatus::kCompleted, .stop = watch_->reason()};
    for (const double timeout : {spec_.timeout, options_.timeout}) {
      if (timeout > 0 && now - begin_ > timeout)
        return Ending{.error = fmt::format("timeout: it took longer than {:g} s and was ended", timeout)};
    }
    if (spec_.silence > 0 && now - last_sign_ > spec_.silence)
      return Ending{
          .error = fmt::format("silence: no output and no metric for {:g} s; it was ended", spec_.silence)};
    return std::nullopt;
  }

  // Replaces the events by new ones, which have no values yet.
  void open_events() {
    events_.reset();
    for (const std::string& file : own_event_files(directory_)) {
      std::error_code ignored;
      std::filesystem::remove(directory_ / file, ignored);
    }
    // The program's file may already have later steps of the metrics that ours has to repeat.
    begin_events_file(true);
    events_->begin(record_.provenance);
  }

  void begin_events_file(bool sorts_first) {
    // It may come after the program's file, whose points it must not make void. And a keeper would inherit
    // its lock, and hold that when the events are written anew; the program's lock does.
    const tbwriter::WriterOptions options{
        .purge_step = kMaxEventStep + 1, .sorts_first = sorts_first, .locks_directory = false};
    events_ =
        std::make_unique<RunLog>(directory_, describe_run(config_, record_.device, record_.jobs), options);
  }

  void save(double now) {
    record_.epochs = history_.epochs();
    record_.run_seconds = now - run_begin_;
    write_file_atomically(directory_ / kRunRecordFile, run_record_text(record_), Survives::kKill);
  }

  TrainedRun conclude(Ending ending) {
    const bool failed = ending.status == RunStatus::kFailed;
    if (failed) {
      const int reports = history_.count();
      ending.error += reports == 0 ? " before its first report" : fmt::format(" after report {}", reports);
      ending.error += end_of_log(directory_);
      log_.error("failed: {}", ending.error.substr(0, ending.error.find('\n')));
    } else {
      log_.info("{}{}", to_string(ending.status), ending.error.empty() ? "" : ": " + ending.error);
    }
    check_owner(options_.owner);
    // TensorBoard stops reading our file once the program has written a later one.
    const std::vector<std::string> files = tbwriter::list_event_files(directory_);
    if (!files.empty() && !tbwriter::is_event_file_name(files.back())) {
      events_->close(RunStatus::kInterrupted, "");
      begin_events_file(false);
    }
    events_->close(ending.status, ending.error);
    record_.status = ending.status;
    record_.stop_reason = ending.stop;
    if (!ending.error.empty()) record_.error = ending.error;
    record_.event_files = event_file_sizes(directory_);
    record_.ended = utc_time();
    save(options_.clock());
    return {.record = record_,
            .failure = failed ? RunFailure::kError : RunFailure::kNone,
            .changes_epochs = true};
  }

  const RunConfig& config_;
  const CommandSpec& spec_;
  const std::size_t until_;  // reports after which it pauses; 0: it does not
  const ReportEvent& report_;
  const TrainerOptions& options_;
  const double begin_;  // of this start
  const std::filesystem::path directory_;
  const LockFile lock_;  // the program's keeper also holds it until all has ended
  RunRecord record_;
  const double run_begin_;  // moved by the time of earlier starts
  LogFile log_;
  std::unique_ptr<RunLog> events_;
  ReportHistory history_;
  MetricSources sources_;
  std::optional<EpochWatch> watch_ = make_epoch_watch(config_, true);
  const MetricSources::Use use_ = [this](MetricReport report) { use(std::move(report)); };
  std::set<const Metric*> renamed_;
  std::optional<Ending> ending_;  // also of a program that has to be ended
  int attempt_ = 0;               // of all starts
  bool is_live_ = false, told_large_step_ = false;
  double last_sign_ = 0, last_report_ = 0, next_look_ = 0, next_save_ = 0;
};

}  // namespace

TrainedRun run_program(const WorkerTask& task, const ReportEvent& report, const TrainerOptions& options) {
  try {
    return CommandRun(task, report, options).run();
  } catch (const RunTakenOver&) {
    return {.record = task.record, .failure = RunFailure::kTakenOver};
  }
}

}  // namespace sweep
