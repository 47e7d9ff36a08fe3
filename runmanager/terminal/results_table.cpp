#include "runmanager/terminal/results_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <span>

#include "core/base/error.h"
#include "core/base/printable.h"
#include "core/base/suggest.h"
#include "core/base/text.h"
#include "runmanager/records/repeats.h"
#include "runmanager/records/run_metric.h"
#include "runmanager/terminal/terminal.h"
#include "runmanager/text/json_document.h"
#include "runmanager/text/table_text.h"

namespace sweep {
namespace {

using Records = std::span<const RunRecord>;

// On a narrow terminal columns that do not vary go first, then times and the validation loss, then a person's
// own metrics, then other parameters, which tell the runs apart, then metrics, and last those of the goals.
constexpr int kUniform = 10, kVaryingParameter = 520, kGoal = 850;

bool is_number(const ParamValue& value) {
  return std::holds_alternative<std::int64_t>(value) || std::holds_alternative<double>(value);
}

void add_param(TextTable& table, const std::string& key, const std::string& title, Records runs) {
  const bool numeric = std::ranges::all_of(runs, [&key](const RunRecord& run) {
    const ParamValue* value = find_param(run.params, key);
    return value == nullptr || is_number(*value);
  });
  const auto text = [&key](const RunRecord& run) { return param_text(run.params, key); };
  const bool varies =
      std::ranges::any_of(runs, [&](const RunRecord& run) { return text(run) != text(runs.front()); });
  table.add_column({.title = title,
                    .right_aligned = numeric,
                    .importance = varies ? kVaryingParameter : kUniform,
                    .leads = true,
                    .key = title},
                   runs, text);
}

// "12", or "5 of 12" for a run that was stopped early.
std::string epochs_text(const RunRecord& run) {
  if (run.epochs.empty()) return "";
  std::string epochs = std::to_string(run.epochs.size());
  if (run.stop_reason.empty() || !run.config.is_object() || !run.config.contains("epochs")) return epochs;
  return fmt::format("{} of {}", epochs, run.config["epochs"].dump());
}

void add_metric(TextTable& table, const Metric& metric, Records runs, bool is_plain) {
  const auto text = [&metric, is_plain](const RunRecord& run) {
    const std::optional<double> value = run_metric(run, metric);
    if (is_plain) return csv_cell(metric, value);
    // The time of an epoch was longer than it would be alone if others were trained at once.
    const bool is_shared =
        run.jobs > 1 && metric.part == MetricPart::kTime && metric.column > 0 && metric.key != "run_seconds";
    return (value && is_shared ? "~" : "") + metric_text(metric, value);
  };
  table.add_column(
      {.title = std::string(metric.title), .importance = metric.importance, .key = std::string(metric.key)},
      runs, text);
}

// Whether a time is marked as add_metric() does: those of runs without an epoch are not, nor are columns that
// are left out.
bool has_shared_times(const TextTable& table) {
  return std::ranges::any_of(table.rows, [&table](const std::vector<std::string>& row) {
    for (std::size_t i = 0; i < row.size(); ++i)
      if (!table.columns[i].leads && row[i].starts_with('~')) return true;
    return false;
  });
}

// A person's own that any run has.
std::vector<const Metric*> own_metrics(Records runs) {
  std::vector<const Metric*> list;
  const auto add = [&list](const Metric& metric) {
    if (find_metric(metric.key) == nullptr && std::ranges::find(list, &metric) == list.end())
      list.push_back(&metric);
  };
  for (const RunRecord& run : runs) {
    for (const auto& [name, value] : run.metrics) add(metric_named(name));
    const auto result = result_values(run);
    if (!result) continue;
    for (const auto& [metric, value] : result->values) add(*metric);
  }
  return list;
}

// Those that tables show, of the program's own and of a person's: how good the runs are, then their times.
std::vector<const Metric*> shown_metrics(Records runs, const Goals& goals) {
  std::vector<const Metric*> list;
  for (const bool times : {false, true}) {
    for (const Metric& metric : metrics()) {
      if (metric.importance > 0 && (metric.part == MetricPart::kTime) == times) list.push_back(&metric);
    }
    if (!times) std::ranges::copy(own_metrics(runs), std::back_inserter(list));
  }
  if (goals.size() > 1)
    for (const Goal& goal : goals) {
      if (std::ranges::find(list, goal.metric) == list.end()) list.push_back(goal.metric);
    }
  return list;
}

// All columns that there are, in their order.
TextTable whole_table(Records runs, const std::vector<std::string>& keys, bool is_plain,
                      const TableOptions& options) {
  const std::vector<const Metric*> shown = shown_metrics(runs, options.goals);
  const bool has_names = keys.empty() || is_plain;
  std::vector<std::string> others = {"status", "epochs"};
  if (has_names) others.emplace_back("run");
  for (const Metric* metric : shown) others.emplace_back(metric->key);
  TextTable table;
  for (const std::string& key : keys) add_param(table, key, param_title(key, others), runs);
  if (!is_plain) table.shorten(kLongText, options.unicode);
  const auto add_text = [&](const char* title, const auto& text) {
    table.add_column({.title = title, .right_aligned = false, .leads = true, .key = title}, runs, text);
  };
  if (has_names) add_text("run", [](const RunRecord& run) { return run.name; });
  add_text("status", [](const RunRecord& run) { return std::string(to_string(run.status)); });
  // Runs that are skipped or have not started are counted below the table.
  const bool all_completed = std::ranges::all_of(runs, [](const RunRecord& run) {
    return run.status == RunStatus::kCompleted || run.status == RunStatus::kSkipped ||
           run.status == RunStatus::kPending;
  });
  if (all_completed) table.columns.back().importance = kUniform;
  table.add_column({.title = "epochs", .importance = 200, .key = "epochs"}, runs, epochs_text);
  for (const Metric* metric : shown) add_metric(table, *metric, runs, is_plain);
  return table;
}

// The columns of `whole` that `names` has, in its order. `keys`: the parameters, which are in front.
TextTable chosen_columns(const TextTable& whole, const std::vector<std::string>& keys,
                         const std::vector<std::string>& names) {
  std::vector<std::string> known;
  for (const Column& column : whole.columns) known.push_back(column.key);
  TextTable chosen;
  for (const std::string& name : names) {
    auto at = static_cast<std::size_t>(std::ranges::find(known, name) - known.begin());
    for (std::size_t i = 0; i < keys.size() && at == known.size(); ++i)
      if (name == std::string(kParamPrefix) + keys[i]) at = i;
    if (at == known.size())
      throw ConfigError(fmt::format("there is no column \"{}\", want {}{}", name, listed(known),
                                    did_you_mean(nearest_key(name, known))));
    chosen.add_column(whole.columns[at], whole.rows, [at](const auto& row) { return row[at]; });
    chosen.columns.back().importance = kNeeded;  // Nothing that is asked for is left out.
  }
  return chosen;
}

TextTable table_of(Records runs, const std::vector<std::string>& keys, bool is_plain,
                   const TableOptions& options) {
  TextTable table = whole_table(runs, keys, is_plain, options);
  if (!options.columns.empty()) table = chosen_columns(table, keys, options.columns);
  table.drop_empty_columns();
  return table;
}

// After an early stop those that have not started would fill the screen, and so would those that are skipped.
bool is_listed(const RunRecord& run, const TableOptions& options) {
  const bool has_begun = run.status != RunStatus::kPending || !run.epochs.empty();
  return has_begun && (run.status != RunStatus::kSkipped || options.skipped);
}

// The rows are told apart by one varying parameter at least. That with the most values stays, and of equal
// ones the narrowest.
void keep_one_parameter(TextTable& table, Records runs, const TableOptions& options) {
  const std::vector<int> widths = table.widths();
  std::pair<std::size_t, int> most;
  Column* kept = nullptr;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (!table.columns[i].leads || table.columns[i].importance != kVaryingParameter) continue;
    std::set<std::string> values;
    for (std::size_t row = 0; row < runs.size(); ++row)
      if (is_listed(runs[row], options)) values.insert(table.rows[row][i]);
    const std::pair rank(values.size(), -widths[i]);
    if (kept == nullptr || rank >= most) kept = &table.columns[i], most = rank;
  }
  if (kept != nullptr) kept->importance = kNeeded;
}

// The colour of a run's line, "" for none.
std::string_view status_color(RunStatus status) {
  switch (status) {
    case RunStatus::kFailed:
      return kRed;
    case RunStatus::kSkipped:
    case RunStatus::kInterrupted:
      return kYellow;
    case RunStatus::kPending:
    case RunStatus::kPruned:
      return kDim;
    default:
      return "";
  }
}

std::string first_line(std::string_view text, bool unicode) {
  std::string line(text.substr(0, text.find('\n')));
  return printable(line) + (line.size() == text.size() ? "" : unicode ? " …" : " ~");
}

// A run that has only a reason shows it in the place of its results.
void put_reasons(TextTable& table, Records runs, const TableOptions& options) {
  const std::vector<int> widths = table.widths();
  const auto leading = static_cast<std::size_t>(std::ranges::find(table.columns, false, &Column::leads) -
                                                table.columns.begin());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].epochs.empty() && runs[i].error)
      table.rows[i].resize(std::min(leading, table.rows[i].size()));
    std::string reason = runs[i].error ? first_line(*runs[i].error, options.unicode) : "";
    const auto end = widths.begin() + static_cast<std::ptrdiff_t>(table.rows[i].size());
    const int room = options.width - kTableGap - std::accumulate(widths.begin(), end, 0);
    if (options.width > 0) reason = room > 0 ? fit_width(reason, room, options.unicode) : "";
    table.tails.push_back(std::move(reason));
  }
}

// "★ highest validation accuracy", and which run that is where the mark does not show it or a search asked.
std::string best_note(const RunRecord& best, const Goals& goals, bool is_shown, bool unicode) {
  std::string note = fmt::format("{} {}", unicode ? "★" : "*", goal_text(goals));
  const Goal& first = goals[0];
  if (is_shown && first.asked.empty()) return note;
  return note + fmt::format(": {}, {}", metric_text(*first.metric, run_metric(best, *first.metric)),
                            printable(best.name));
}

// The first `count` of `all`; 0: all.
Records first_runs(Records all, std::size_t count) {
  return count == 0 ? all : all.first(std::min(count, all.size()));
}

// "85.36% ± 0.21"; "" if a run has no value.
std::string spread_text(const std::vector<const RunRecord*>& runs, const Metric& metric,
                        const char* plus_minus) {
  std::vector<double> values;
  for (const RunRecord* run : runs) {
    const std::optional<double> value = run_metric(*run, metric);
    if (!value) return "";
    values.push_back(*value);
  }
  const Spread spread = spread_of(values);
  std::string deviation = metric_text(metric, spread.deviation);
  if (deviation.ends_with('%')) deviation.pop_back();
  return fmt::format("{} {} {}", metric_text(metric, spread.mean), plus_minus, deviation);
}

// A table with a line per combination with at least two completed repeats, of which the first `count` of
// `runs` have one: the parameters `keys` without the repeat, how many, and mean ± standard deviation of
// metrics. "" if there is no such combination.
std::string repeats_table(Records runs, std::size_t count, const std::vector<std::string>& keys, bool unicode,
                          int width) {
  std::vector<std::string> shown_keys = keys;
  std::erase(shown_keys, kRepeatKey);
  std::vector<const Metric*> shown = own_metrics(runs);
  for (const Metric& metric : metrics()) shown.push_back(&metric);
  std::erase_if(shown, [](const Metric* metric) { return metric->mean_importance == 0; });
  std::vector<CompletedRepeats> combinations = completed_repeats(runs);
  std::erase_if(combinations,
                [&](const CompletedRepeats& repeats) { return repeats.runs.front() >= runs.data() + count; });
  if (combinations.empty()) return "";
  std::vector<std::string> titles = {"repeats"};
  for (const Metric* metric : shown) titles.emplace_back(metric->title);
  TextTable table;
  for (const std::string& key : shown_keys) {
    const auto text = [&key](const CompletedRepeats& repeats) { return param_text(repeats.params, key); };
    // Those that do not vary go first.
    const bool varies = std::ranges::any_of(
        combinations, [&](const auto& repeats) { return text(repeats) != text(combinations.front()); });
    table.add_column({.title = param_title(key, titles),
                      .right_aligned = false,
                      .importance = !varies                 ? 10
                                    : shown_keys.size() > 1 ? 50
                                                            : kNeeded,
                      .leads = true},
                     combinations, text);
  }
  table.shorten(kLongText, unicode);
  table.add_column({.title = "repeats", .importance = 15}, combinations,
                   [](const CompletedRepeats& repeats) { return std::to_string(repeats.runs.size()); });
  for (const Metric* metric : shown)
    table.add_column({.title = std::string(metric->title), .importance = metric->mean_importance},
                     combinations, [&](const CompletedRepeats& repeats) {
                       return spread_text(repeats.runs, *metric, unicode ? "±" : "+-");
                     });
  table.drop_empty_columns();
  return fmt::format("\nMean {} standard deviation over repeats:\n\n{}", unicode ? "±" : "+-",
                     formatted_table(std::move(table), {.unicode = unicode, .width = width}));
}

}  // namespace

std::string results_table(const std::vector<RunRecord>& all, const std::vector<std::string>& keys,
                          const TableOptions& options) {
  const Goals goals = default_goals(all, options.goals);
  std::optional<std::size_t> best = best_run(all, goals);
  if (const auto named = std::ranges::find(all, options.best, &RunRecord::name); named != all.end())
    best = static_cast<std::size_t>(named - all.begin());
  const std::vector<std::size_t> front = front_runs(all, goals);
  const Records runs = first_runs(all, options.top);
  TextTable table = table_of(runs, keys, false, options);
  std::vector<std::string> left_out;
  if (options.width > 0) {
    for (Column& column : table.columns)
      if (std::ranges::find(goals, column.key, [](const Goal& goal) { return goal.metric->key; }) !=
          goals.end())
        column.importance = std::max(column.importance, kGoal);
    keep_one_parameter(table, runs, options);
    left_out = table.fit(options.width, options.unicode);
  }
  put_reasons(table, runs, options);
  const Terminal terminal{.color = options.color};
  const TableLines lines = table_lines(table, options.unicode);
  std::string text =
      painted(terminal, kBold, lines.titles) + "\n" + painted(terminal, kDim, lines.rule) + "\n";
  std::map<std::string, std::size_t> skipped;  // by reason
  std::size_t pending = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!is_listed(runs[i], options)) {
      runs[i].status == RunStatus::kPending ? ++pending : ++skipped[runs[i].error.value_or("")];
      continue;
    }
    std::string line = lines.rows[i];
    const bool is_in_front = std::ranges::find(front, i) != front.end();
    if (best == i || is_in_front)
      line.replace(0, kTableGap, best != i ? (options.unicode ? "◆ " : "+ ") : options.unicode ? "★ " : "* ");
    const std::string_view color = best == i || is_in_front ? kGreen : status_color(runs[i].status);
    text += (color.empty() ? line : painted(terminal, color, line)) + "\n";
  }
  const auto note = [&](const std::string& words, std::string_view color) {
    const std::string line = "  " + words;
    const bool is_any = options.width == 0;
    text += painted(terminal, color, is_any ? line : fit_width(line, options.width, options.unicode)) + "\n";
  };
  for (const auto& [reason, count] : skipped)
    note(fmt::format("{} skipped: {}", counted(count, "run"), first_line(reason, options.unicode)), kYellow);
  if (pending > 0) note(counted(pending, "run") + " not started", kDim);
  if (best && all.size() > 1) note(best_note(all[*best], goals, *best < runs.size(), options.unicode), kDim);
  if (!front.empty())
    note(fmt::format("{} not beaten in {}: {}", options.unicode ? "◆" : "+", goal_names(goals),
                     counted(front.size(), "run")),
         kDim);
  if (has_shared_times(table)) note("~ timed while runs shared the machine", kDim);
  return text + painted(terminal, kDim, not_shown_text(left_out, options.width)) +
         repeats_table(all, runs.size(), keys, options.unicode, options.width);
}

std::string formatted_results(const std::vector<RunRecord>& all, const std::vector<std::string>& keys,
                              TableFormat format, const TableOptions& options) {
  const Records runs = first_runs(all, options.top);
  return formatted_table(table_of(runs, keys, format == TableFormat::kCsv, options),
                         {.format = format, .unicode = options.unicode});
}

}  // namespace sweep
