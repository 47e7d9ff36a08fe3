#include "runmanager/sweep/sweep_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "core/base/text.h"
#include "core/json/json_text.h"
#include "runmanager/kinds/command/metric_sources.h"
#include "runmanager/records/judge.h"
#include "runmanager/records/provenance.h"
#include "runmanager/records/run_metric.h"
#include "runmanager/sweepfile/sweep_file.h"
#include "runmanager/tensorboard/view_hint.h"
#include "runmanager/terminal/progress.h"
#include "runmanager/terminal/results_table.h"
#include "runmanager/text/json_document.h"
#include "runmanager/text/json_output.h"
#include "runmanager/training/stop_signals.h"

namespace sweep {
namespace {

// The same command. But one with --fresh would make yet another directory, a task of a cluster trains only
// its part, and what was read from standard input is gone: the directory has it.
std::string resume_command(const SweepSummary& summary, const RunnerOptions& options) {
  if (summary.sweep.file == kStandardInput || options.fresh || options.takes)
    return shell_command({options.command.at(0), "resume"}, summary.directory);
  return shell_command(options.command);
}

// "50 trials, 5 of them to the end; best: Accuracy/validation 0.91, lr=0.003".
std::string search_text(const SweepSummary& summary, const std::vector<RunRecord>& runs) {
  const SearchSpec& search = *summary.sweep.search;
  const auto trials = std::ranges::count(summary.sweep.runs, 0U, &RunConfig::repeat);
  std::string text = counted(static_cast<std::size_t>(trials), "trial");
  if (compares_on_the_way(search.method))
    text += fmt::format(", {} of them to the end",
                        std::ranges::count(runs, RunStatus::kCompleted, &RunRecord::status));
  if (const auto best = best_run(runs, search.goals)) {
    text += fmt::format("; best: {} {:.6g}, {}", search.goals[0].asked,
                        *run_metric(runs[*best], *search.goals[0].metric), runs[*best].name);
  }
  if (!summary.search->reason.empty()) text += "\nNo more trials: " + summary.search->reason;
  return text;
}

// What a person should know who waits for a metric that never came; "" if it did.
std::string missing_metric_text(const std::vector<RunRecord>& runs, const Sweep& sweep) {
  std::vector<const RunRecord*> ended;
  for (const RunRecord& run : runs) {
    if (run.status == RunStatus::kCompleted || run.status == RunStatus::kPruned) ended.push_back(&run);
  }
  const auto text = [&ended](const Metric& metric, const char* use) {
    const bool has_value = std::ranges::any_of(
        ended, [&metric](const RunRecord* run) { return run_metric(*run, metric).has_value(); });
    return ended.empty() || has_value ? ""
                                      : fmt::format("No run has reported {}, {}; there are: {}", metric.key,
                                                    use, fmt::join(metric_names(ended), ", "));
  };
  for (const Goal& goal : goals_of(sweep)) {
    if (goal.metric == nullptr) continue;
    if (std::string missing = text(*goal.metric, "by which runs are judged"); !missing.empty())
      return missing;
  }
  if (sweep.runs.empty()) return "";
  const RunConfig& first = sweep.runs.front();
  if (first.stop) return text(*first.stop->goal.metric, "which \"stop\" watches");
  const bool is_silent = first.command && first.command->metrics.empty() && !ended.empty() &&
                         std::ranges::all_of(ended, [](const RunRecord* run) { return run->epochs.empty(); });
  return is_silent ? "No run has reported a metric. Name what the program prints, as by "
                     "metrics.loss='loss=([0-9.]+)', or let it append lines such as {\"loss\": 0.5} to the "
                     "file $SWEEP_METRICS"
                   : "";
}

// Which expressions of "metrics" have found nothing in any run; "" if there are none.
std::string unmatched_text(const std::vector<RunRecord>& runs, const Sweep& sweep) {
  if (sweep.runs.empty() || !sweep.runs.front().command) return "";
  std::string text;
  for (const auto& [name, expression] : sweep.runs.front().command->metrics) {
    bool was_tried = false, has_value = false;
    for (const RunRecord& run : runs) {
      const Metric& metric = metric_called(name);
      has_value = has_value || run_metric(run, metric) || run_metric(run, metric_apart(metric));
      const auto* const expressions = find_at(run.config, "metrics");
      was_tried = was_tried || (run.status == RunStatus::kCompleted && expressions != nullptr &&
                                expressions->value(name, nlohmann::ordered_json()) == expression);
    }
    if (was_tried && !has_value)
      text += fmt::format(
          "\nmetrics.{}: no line of the standard output of any run has a number that matches {}\n", name,
          in_quotes(expression));
  }
  return text;
}

}  // namespace

void print_summary(const SweepSummary& summary, const RunnerOptions& options,
                   const SweepEnvironment& environment) {
  const Goals goals = goals_of(summary.sweep);
  std::vector<RunRecord> sorted;
  if (!options.json && goals.size() > 1) put_front_first(sorted = summary.runs, goals);
  const std::vector<RunRecord>& runs = sorted.empty() ? summary.runs : sorted;
  std::ostream& out = *environment.out;
  if (options.json) {
    out << json_text(results_json(runs, summary.directory.filename().string()));
  } else {
    out << results_table(
        runs, summary.sweep.keys,
        {.color = stdout_color(), .unicode = stdout_unicode(), .width = stdout_width(), .goals = goals});
  }
  out.flush();
  // Lines with their ends, perhaps an empty one before them.
  const auto say = [&](std::string_view text) {
    if (!options.json) return environment.terminal.write(text);
    text.remove_prefix(text.starts_with('\n') ? 1 : 0);
    text.remove_suffix(1);
    environment.terminal.write(json_message(text));
  };
  // A terminal would break words.
  const int columns = environment.terminal.interactive && !options.json ? environment.terminal.width() : 0;
  if (!options.quiet && summary.search) say("\n" + wrapped(search_text(summary, runs), columns) + "\n");
  if (const std::string text = missing_metric_text(runs, summary.sweep); !text.empty())
    say("\n" + text + "\n");
  if (const std::string text = unmatched_text(runs, summary.sweep); !text.empty()) say(text);
  if (!options.quiet && summary.cost.runs > 0) say("\n" + wrapped(cost_text(summary.cost), columns) + "\n");
  if (!options.quiet) say("\n" + view_hint(summary.directory, runs, summary.means));
  if (summary.signal != 0 && !options.command.empty()) {
    say(fmt::format("Stopped by {}. To go on: {}\n", signal_name(summary.signal),
                    resume_command(summary, options)));
  }
}

int exit_code_of(std::span<const RunRecord> runs, int signal) {
  if (signal == SIGUSR1 || signal == SIGUSR2 || signal == kTimeIsUp) return kExitRunAgain;
  if (signal != 0) return 128 + signal;
  const bool failed =
      std::ranges::any_of(runs, [](const RunRecord& run) { return run.status == RunStatus::kFailed; });
  return failed ? 1 : 0;
}

}  // namespace sweep
