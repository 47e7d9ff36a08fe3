#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/child.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "runmanager/kinds/command/command_files.h"
#include "runmanager/kinds/command/command_kind.h"
#include "runmanager/kinds/command/command_words.h"
#include "runmanager/kinds/command/metric_sources.h"
#include "runmanager/records/provenance.h"
#include "runmanager/records/recorded_config.h"
#include "runmanager/records/run_files.h"
#include "runmanager/training/epoch_watch.h"
#include "runmanager/training/log_file.h"
#include "runmanager/training/stop_signals.h"

namespace sweep {
namespace {

constexpr int kRunAgain = 75;   // EX_TEMPFAIL, as this program's own
constexpr int kMaxStarts = 50;  // of a program that asks for it
constexpr double kSecondsBetweenLooks = 0.2, kSecondsBetweenSaves = 1;
// After which a step is shown though no later one has begun. More may come: its validation takes a while.
constexpr double kSecondsOfStep = 1;
constexpr double kSecondsToStop = 1;  // from the end of a program by a signal until the sweep also has it

// That of a program which has ended by itself.
RunEnding ending_of(const std::string& program, const ProcessEnd& end) {
  if (end.kind == ProcessEnd::Kind::kNotStarted)
    return {.error = fmt::format(
                "{} could not be started{}: {}{}", program, end.cwd ? " in its working directory" : "",
                std::strerror(end.value),
                end.value == ENOENT && !end.cwd ? ", or not the interpreter in its first line" : "")};
  if (end.kind != ProcessEnd::Kind::kExit)
    return {.error = fmt::format("{} was {}", program, killed_by(end.value))};
  if (end.value == 0) return {.status = RunStatus::kCompleted};
  return {.error = fmt::format("{} ended with exit code {}", program, end.value)};
}

// A search compares runs by the number of a report, which must not be left out.
std::size_t kept_steps(const RunConfig& config) {
  constexpr int kMin = 1000;
  return static_cast<std::size_t>(std::clamp(config.epochs, kMin, kMaxComparedReports));
}

// Does one run; used once.
class CommandRun {
 public:
  CommandRun(const WorkerTask& task, const ReportEvent& report, const TrainerOptions& options)
      : task_(task),
        spec_(*task.config.command),
        report_(report),
        options_(options),
        begin_(options.clock()),
        files_(task, options),
        run_begin_(begin_ - files_.record().run_seconds.value_or(0)),
        log_(files_.directory() / kLogFile, false),
        history_([this](std::int64_t step, const EpochRecord& values) { close_step(step, values); },
                 kept_steps(task.config), [this](std::int64_t step) { start_over(step); }),
        watch_(make_epoch_watch(task.config, true)),
        sources_(files_.directory(), spec_) {}

  TrainedRun run() {
    read_earlier();
    std::optional<ProcessEnd> end;
    for (int starts = 0; !ending_ && (!end || wants_again(*end)); ++starts) {
      if (starts == kMaxStarts)
        ending_ = {.error =
                       fmt::format("asked {} times to be run again, by exit code {}", kMaxStarts, kRunAgain)};
      else
        end = run_once();
    }
    if (!ending_) await_stop(*end);
    if (!ending_ && is_through_interval(*end)) ending_ = waits();
    return conclude(ending_ ? *std::move(ending_)
                            : ending_of(spec_.shell ? "the command" : spec_.words[0], *end));
  }

 private:
  static bool wants_again(const ProcessEnd& end) {
    return end.kind == ProcessEnd::Kind::kExit && end.value == kRunAgain;
  }

  // The reports after which a program of a population saves its state and ends by itself; 0: of another.
  int until_in_population() const {
    if (!task_.config.resolved.contains(kLineageKey)) return 0;
    return task_.until_epoch > 0 ? task_.until_epoch : task_.config.epochs;
  }

  bool is_through_interval(const ProcessEnd& end) const {
    return task_.until_epoch > 0 && until_in_population() > 0 && end.kind == ProcessEnd::Kind::kExit &&
           end.value == 0 && history_.size() >= static_cast<std::size_t>(task_.until_epoch);
  }

  RunEnding waits() const {
    return {.status = RunStatus::kInterrupted,
            .error = fmt::format("waits after epoch {}", task_.until_epoch)};
  }

  // A signal to all processes of a job may end the program before this worker is asked to stop.
  void await_stop(const ProcessEnd& end) {
    constexpr int kOfShells = 128;  // plus the signal: exit code of a shell whose command it ended
    const int signal = end.kind == ProcessEnd::Kind::kSignal ? end.value : end.value - kOfShells;
    if (end.kind == ProcessEnd::Kind::kNotStarted ||
        std::ranges::find(kStopSignals, signal) == kStopSignals.end())
      return;
    const double until = options_.clock() + kSecondsToStop;
    while (!(ending_ = stop_asked()) && options_.clock() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }

  // What earlier starts have reported.
  void read_earlier() {
    history_.know_times(files_.record().epochs);
    const MetricSources::Use add = [this](MetricReport report) {
      history_.add(named_apart(std::move(report)), std::nullopt);
    };
    sources_.poll_file(add, [this](int attempt) {
      attempt_ = attempt;
      history_.begin_attempt();
    });
    history_.end_attempt();  // The events are those of all.
    sources_.poll_events(add);
    sources_.take_problems();  // Told by the start that has seen them first.
    history_.take_repeated();
    history_.close();
    if (const Lineage lineage = lineage_of(task_.config.resolved);
        !lineage.empty() && history_.size() < static_cast<std::size_t>(lineage.back().until))
      ending_ = {.error = fmt::format("{}, which it continues, has not written its metrics to "
                                      "$SWEEP_METRICS or its output, as a population needs",
                                      lineage.back().run)};
    begin_live();
  }

  void begin_live() {
    is_live_ = true;
    report_(RunPlan{.name = task_.config.name,
                    .epochs = task_.config.resolved.contains("reports") ? task_.config.epochs : 0,
                    .batches = 1,
                    .samples = 1,
                    .trained_epochs = static_cast<int>(history_.size()),
                    .finished_epochs = history_.epochs(),
                    .has_classes = false});
  }

  ProcessEnd run_once() {
    const CommandStart start{.config = task_.config,
                             .run_directory = files_.directory(),
                             .attempt = ++attempt_,
                             .threads = options_.threads(),
                             .gpus = task_.record.provenance.value(kGpusKey, std::vector<std::string>()),
                             .until = until_in_population()};
    write_file_atomically(files_.directory() / kParamsFile, params_text(task_.config), Survives::kKill);
    sources_.begin_attempt(start.attempt);
    history_.begin_attempt();
    const std::vector<std::string> words = command_words(start);
    log_.info("attempt {}: {}", start.attempt, shell_command(words));
    Child program({.words = words,
                   .environment = command_environment(start),
                   .directory = spec_.cwd == kRunCwd ? files_.directory() : spec_.cwd,
                   .group = ChildGroup::kKept});
    last_sign_ = options_.clock();
    next_look_ = next_save_ = 0;
    std::optional<ProcessEnd> end;
    while (!end) {
      program.wait(std::chrono::milliseconds(100));
      end = program.end();
      program.read([this](std::string_view text, bool is_error) { take_output(text, is_error); });
      look(end.has_value());
      if (!end) check_deadlines(program);
    }
    sources_.end_attempt();
    look(true);
    history_.close();
    sources_.restore(start.attempt, history_.reported());
    log_.end_line();
    if (const auto step = history_.take_repeated())
      log_.warn(
          "step {} was reported again with other values, which do not count; does each epoch count its own "
          "steps, or do two sources (files of events, {}, output) report one metric?",
          *step, kMetricsFile);
    for (const auto& [what, problem] : sources_.take_problems()) log_.warn("{}: {}", what, problem);
    return *end;
  }

  void take_output(std::string_view text, bool is_error) {
    last_sign_ = options_.clock();
    log_.write_output(text);
    if (!is_error) sources_.add_output(text);
  }

  // Follows files and the clock, as often as is worth it.
  void look(bool is_last) {
    const double now = options_.clock();
    if (now < next_look_ && !is_last) return;
    next_look_ = now + kSecondsBetweenLooks;
    const MetricSources::Use add = [this](MetricReport report) { use(std::move(report)); };
    sources_.poll_file(add);
    sources_.poll_events(add);
    if (now - last_report_ > kSecondsOfStep) history_.close();
    // What the program has left is in its files, and the record that says how it ended follows.
    if (now < next_save_ || is_last) return;
    next_save_ = now + kSecondsBetweenSaves;
    report_(RunPhase{"running"});
    files_.save(history_.epochs(), now - run_begin_);
  }

  MetricReport named_apart(MetricReport report) {
    for (auto& [metric, value] : report.values) {
      if (find_param(task_.config.params, std::string(metric->key)) == nullptr || tells_position(*metric))
        continue;
      const Metric& renamed = metric_apart(*metric);
      if (renamed_.insert(metric).second)
        log_.info("the metric {} is called {}, as there is a parameter {}", metric->key, renamed.key,
                  metric->key);
      metric = &renamed;
    }
    return report;
  }

  void use(MetricReport report) {
    const double now = last_sign_ = last_report_ = options_.clock();
    const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
    const double age = std::chrono::duration<double>(since_1970).count() - report.wall_time;
    const double when = report.wall_time > 0 ? std::clamp(now - age, begin_, now) : now;
    history_.add(named_apart(std::move(report)), when - run_begin_);
  }

  // Shows again the steps that stay, to all that follows them.
  void start_over(std::int64_t step) {
    const bool was_live = std::exchange(is_live_, false);
    if (was_live) {
      log_.info("starts over at step {}", step);
      sources_.start_over(history_.reported());
    }
    watch_ = make_epoch_watch(task_.config, true);
    files_.open_events();
    history_.repeat();
    if (was_live) begin_live();
  }

  void close_step(std::int64_t step, const EpochRecord& values) {
    if (step > CommandFiles::kMaxEventStep && !std::exchange(told_large_step_, true))
      log_.warn(
          "step {} is in the results, but not in the events: TensorBoard has steps up to {}; count in "
          "thousands, say",
          step, CommandFiles::kMaxEventStep);
    files_.write_events(step, history_.not_in_events(step, values));
    if (watch_) watch_->add(values);
    if (is_live_ && step == history_.last_step() && history_.keeps_last()) report_(history_.last());
  }

  void check_deadlines(Child& program) {
    const double now = options_.clock();
    check_owner(options_.owner);
    if (!ending_) ending_ = reason_to_end(now);
    if (ending_) program.stop(now, spec_.grace);
  }

  std::optional<RunEnding> stop_asked() const {
    const int signal = options_.stop_requested();
    if (signal == 0) return std::nullopt;
    return RunEnding{.status = RunStatus::kInterrupted,
                     .error = fmt::format("stopped by {}", signal_name(signal))};
  }

  std::optional<RunEnding> reason_to_end(double now) const {
    if (auto stopped = stop_asked()) return stopped;
    if (task_.until_epoch > 0 && history_.complete() >= static_cast<std::size_t>(task_.until_epoch))
      return waits();
    if (watch_ && watch_->has_ended())
      return RunEnding{.status = RunStatus::kCompleted, .stop = watch_->reason()};
    for (const double timeout : {spec_.timeout, options_.timeout}) {
      if (timeout > 0 && now - begin_ > timeout)
        return RunEnding{.error = fmt::format("timeout: it took longer than {:g} s and was ended", timeout)};
    }
    if (spec_.silence > 0 && now - last_sign_ > spec_.silence)
      return RunEnding{
          .error = fmt::format("silence: no output and no metric for {:g} s; it was ended", spec_.silence)};
    return std::nullopt;
  }

  TrainedRun conclude(RunEnding ending) {
    const bool failed = ending.status == RunStatus::kFailed;
    if (failed) {
      const std::size_t epochs = history_.size();
      ending.error += epochs == 0 ? " before its first report" : fmt::format(" after report {}", epochs);
      ending.error += end_of_log(files_.directory());
      log_.error("failed: {}", ending.error.substr(0, ending.error.find('\n')));
    } else {
      log_.info("{}{}", to_string(ending.status), ending.error.empty() ? "" : ": " + ending.error);
    }
    return {.record = files_.end(history_.epochs(), options_.clock() - run_begin_, ending),
            .failure = failed ? RunFailure::kError : RunFailure::kNone,
            .changes_epochs = true};
  }

  const WorkerTask& task_;
  const CommandSpec& spec_;
  const ReportEvent& report_;
  const TrainerOptions& options_;
  const double begin_;  // of this start
  CommandFiles files_;
  const double run_begin_;  // moved by the time of earlier starts
  LogFile log_;
  ReportHistory history_;
  std::optional<EpochWatch> watch_;
  MetricSources sources_;
  std::set<const Metric*> renamed_;
  std::optional<RunEnding> ending_;  // if the program does not end by itself
  int attempt_ = 0;                  // of all starts
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
