#include "runmanager/terminal/live_sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "core/base/printable.h"
#include "runmanager/records/run_metric.h"
#include "runmanager/terminal/table.h"

namespace sweep {
namespace {

constexpr int kMaxLines = 12, kFewestLines = 4;
constexpr int kShortestBar = 6, kLongestBar = 24, kPercentWidth = 5;

// The lowest column is left out first if there is no room. Parameters are constant, vary in the sweep, or
// differ between the runs of the table.
constexpr int kBatchRate = 5, kConstant = 10, kValidation = 20, kVarying = 25, kRate = 30, kTimeLeft = 40,
              kLoss = 50, kTelling = 60;

// "7 s", "1 m 05 s". Tenths would flicker with every redraw.
std::string whole_seconds(double seconds) {
  return seconds < 59.5 ? fmt::format("{:.0f} s", std::floor(seconds)) : human_seconds(seconds);
}

std::string left_text(const std::optional<double>& seconds) {
  return seconds && *seconds > 0 ? whole_seconds(std::ceil(*seconds)) : "";
}

std::string percent_text(double fraction) { return fmt::format("{:3.0f}%", std::floor(100 * fraction)); }

std::string bar(const Terminal& terminal, double fraction, int width) {
  const int halves = static_cast<int>(std::floor(std::clamp(fraction, 0.0, 1.0) * 2 * width));
  std::string full, rest;
  if (!terminal.unicode) {
    full.assign(static_cast<std::size_t>(halves / 2), '#');
    rest.assign(static_cast<std::size_t>(width - halves / 2), '-');
    return painted(terminal, kGreen, full) + painted(terminal, kDim, rest);
  }
  for (int i = 0; i < halves / 2; ++i) full += "━";
  if (halves % 2 != 0) full += "╸";
  // The rest is dim; without colours it is a thin line instead.
  for (int i = (halves + 1) / 2; i < width; ++i) rest += terminal.color ? "━" : "─";
  return painted(terminal, kGreen, full) + painted(terminal, kDim, rest);
}

using LiveRuns = std::vector<const LiveRun*>;

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789.+-e") == std::string::npos;
}

// Whether the name of a run has a value of the key.
bool has_key(const std::string& name, const std::string& key) {
  return name.starts_with(key + "=") || name.find("," + key + "=") != std::string::npos;
}

// The swept keys, in the order of the file, and those of them that differ between the known runs.
struct LiveKeys {
  std::vector<std::string> all;
  std::set<std::string> varying;
};

LiveKeys keys_of(const LiveSweep& sweep) {
  LiveKeys keys;
  std::map<std::string, std::string> first;
  sweep.for_each_known([&](const std::string&, const Params& params) {
    for (const auto& [key, value] : params) {
      const std::string text = param_text(value);
      const auto [at, is_new] = first.emplace(key, text);
      if (is_new) {
        keys.all.push_back(key);
      } else if (at->second != text) {
        keys.varying.insert(key);
      }
    }
  });
  if (!keys.varying.empty()) return keys;
  // One run, say. Its name has the keys that vary in the sweep.
  sweep.for_each_known([&](const std::string& name, const Params& params) {
    for (const auto& [key, value] : params) {
      if (has_key(name, key)) keys.varying.insert(key);
    }
  });
  return keys;
}

int param_importance(const LiveRuns& runs, const LiveKeys& keys, const std::string& key) {
  const auto text_of = [&key](const LiveRun* run) { return param_text(run->params, key); };
  const bool tells = std::any_of(runs.begin(), runs.end(),
                                 [&](const LiveRun* run) { return text_of(run) != text_of(runs.front()); });
  if (tells) return kTelling;
  if (!keys.varying.contains(key)) return kConstant;
  // One of them at least is to be seen, if only one run is.
  return runs.size() == 1 &&
                 key == *std::find_if(keys.all.begin(), keys.all.end(),
                                      [&](const std::string& k) { return keys.varying.contains(k); })
             ? kTelling
             : kVarying;
}

void add_names(const LiveSweep& sweep, const LiveRuns& runs, bool unicode, TextTable& table) {
  const LiveKeys keys = keys_of(sweep);
  for (const std::string& key : keys.all) {
    const auto text = [&key, unicode](const LiveRun* run) {
      return fit_width(param_text(run->params, key), 24, unicode);
    };
    const bool numbers = std::ranges::all_of(runs, [&](const LiveRun* run) { return is_number(text(run)); });
    table.add_column({.title = key,
                      .right_aligned = numbers,
                      .importance = param_importance(runs, keys, key),
                      .leads = true},
                     runs, text);
  }
  if (keys.all.empty())
    table.add_column({.title = "run", .right_aligned = false, .leads = true}, runs,
                     [](const LiveRun* run) { return run->name; });
  table.add_column({.title = "epoch", .leads = true}, runs, [](const LiveRun* run) {
    return run->has_begun ? fmt::format("{}{}", run->current_epoch(), run->of_epochs()) : "";
  });
}

// A program's own that any run has reported in its last epoch.
std::vector<const Metric*> own_metrics(const LiveRuns& runs) {
  std::vector<const Metric*> list;
  for (const LiveRun* run : runs) {
    if (!run->last) continue;
    for (const auto& [metric, value] : run->last->values)
      if (find_metric(metric->key) == nullptr && std::ranges::find(list, metric) == list.end())
        list.push_back(metric);
  }
  return list;
}

void add_numbers(const LiveSweep& sweep, const LiveRuns& runs, TextTable& table) {
  // What keeps its place while nothing is known stays: a table that jumps cannot be read.
  const auto add = [&](std::string_view title, int importance, int min_width, bool stays, const auto& text) {
    const bool any = std::ranges::any_of(runs, [&](const LiveRun* run) { return !text(*run).empty(); });
    if (stays || any)
      table.add_column({.title = std::string(title), .importance = importance, .min_width = min_width}, runs,
                       [&](const LiveRun* run) { return text(*run); });
  };
  const auto add_metric = [&](std::string_view key, int importance, bool stays, const auto& value) {
    const Metric& metric = metric_named(key);
    add(metric.brief, importance, 6, stays,
        [&](const LiveRun& run) { return metric_text(metric, value(run, metric)); });
  };
  const auto of_last = [](const LiveRun& run, const Metric& metric) {
    return run.last ? (*run.last)[metric] : std::nullopt;
  };
  const auto rate = [](const std::optional<double>& value) { return value ? human_count(*value) : ""; };
  const bool has_accuracy =
      std::ranges::any_of(runs, [](const LiveRun* run) { return run->accuracy.has_value(); });
  const bool is_validated = std::ranges::any_of(sweep.latest, [](const RunRecord& run) {
    return !run.epochs.empty() && run.epochs.back()["validation_loss"];
  });
  // An epoch of a person's own program is one sample.
  const bool has_samples = std::ranges::none_of(runs, [](const LiveRun* run) { return run->samples == 1; });
  add_metric("loss", has_accuracy ? kLoss : kNeeded, has_samples,
             [](const LiveRun& run, const Metric&) { return run.loss; });
  add_metric("accuracy", kNeeded, false, [](const LiveRun& run, const Metric&) { return run.accuracy; });
  add_metric("validation_loss", kValidation - 1, is_validated, of_last);
  add_metric("validation_accuracy", kValidation, is_validated, of_last);
  for (const Metric* metric : own_metrics(runs)) add_metric(metric->key, kValidation, false, of_last);
  add("it/s", kBatchRate, 5, false, [&](const LiveRun& run) { return rate(run.batches_per_second); });
  add("img/s", kRate, 5, has_samples, [&](const LiveRun& run) { return rate(run.samples_per_second); });
  add("left", kTimeLeft, 4, true, [](const LiveRun& run) { return left_text(run.seconds_left()); });
}

// The titles and a line per run, the bar between what names the run and its numbers.
std::vector<std::string> run_lines(const LiveSweep& sweep, const LiveRuns& runs, const Terminal& terminal,
                                   int width) {
  TextTable table;
  add_names(sweep, runs, terminal.unicode, table);
  add_numbers(sweep, runs, table);
  const int beside = kTableGap + kPercentWidth;  // the bar
  table.fit(width - beside - kShortestBar, terminal.unicode);
  const std::vector<int> widths = table.widths();
  const int columns = std::accumulate(widths.begin(), widths.end(), 0);
  const int bar_width = std::clamp(width - beside - columns, kShortestBar, kLongestBar);
  const int progress_width = bar_width + kPercentWidth;
  const std::string gap(kTableGap, ' ');
  const auto line = [&](const std::vector<std::string>& cells, const std::string& progress,
                        std::string_view name_color) {
    std::string names, numbers;
    const std::vector<std::string> list = padded_cells(table, widths, cells);
    for (std::size_t i = 0; i < list.size(); ++i) (table.columns[i].leads ? names : numbers) += list[i];
    return (name_color.empty() ? names : painted(terminal, name_color, names)) + gap + progress + numbers;
  };
  std::vector<std::string> titles;
  for (const Column& column : table.columns) titles.push_back(column.title);
  std::vector<std::string> lines = {
      painted(terminal, kDim, line(titles, std::string(progress_width, ' '), ""))};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const LiveRun& run = *runs[i];
    // If the number of epochs is not known, there is nothing to measure.
    const std::string progress =
        run.phase.empty() && run.epochs > 0
            ? bar(terminal, run.epoch_fraction(), bar_width) + " " + percent_text(run.epoch_fraction())
            : painted(terminal, kDim,
                      padded(fit_width(run.phase, progress_width, terminal.unicode), progress_width));
    lines.push_back(line(table.rows[i], progress, kCyan));
  }
  return lines;
}

// Joins as many details as fit into `columns`. The most important ones come first.
std::string join_fitting(const std::vector<std::string>& details, int columns) {
  std::string text;
  for (const std::string& detail : details) {
    if (detail.empty()) continue;
    const std::string longer = text.empty() ? detail : text + "  " + detail;
    if (display_width(longer) > columns) break;
    text = longer;
  }
  return text;
}

// "fashion  3/16 runs  ━━━━━━╸━━━━━━  43%  41 s left  …"
std::string sweep_line(const LiveSweep& sweep, const Terminal& terminal, int width) {
  const std::size_t failed = sweep.count(RunStatus::kFailed), skipped = sweep.count(RunStatus::kSkipped);
  const std::string left = left_text(sweep.seconds_left());
  const std::optional<double> rate = sweep.samples_per_second();
  std::string line =
      painted(terminal, kBold, fit_width(printable(sweep.name), std::max(8, width / 4), terminal.unicode)) +
      fmt::format("  {}/{} runs  ", sweep.finished(), sweep.runs);
  const int bar_width = std::clamp(width / 5, kShortestBar, kLongestBar);
  line += bar(terminal, sweep.fraction(), bar_width) + " " + percent_text(sweep.fraction()) + "  ";
  return line +
         join_fitting({left.empty() ? "" : left + " left",
                       failed > 0 ? painted(terminal, kRed, fmt::format("{} failed", failed)) : "",
                       skipped > 0 ? painted(terminal, kYellow, fmt::format("{} skipped", skipped)) : "",
                       painted(terminal, kDim, whole_seconds(sweep.seconds) + " so far"),
                       rate ? painted(terminal, kDim, human_count(*rate) + " img/s") : "",
                       sweep.kept > 0 ? painted(terminal, kDim, fmt::format("{} kept", sweep.kept)) : ""},
                      width - display_width(line));
}

bool is_validated(const EpochRecord& epoch) { return epoch["validation_loss"].has_value(); }

// "val acc 86.36%", a piece for each metric of `values` that lines show. Loss and accuracy are also told of
// the training; of the others those of the validation are enough.
template <typename Visit>
void for_each_piece(const EpochRecord& epoch, const Visit& visit) {
  for (const Metric& metric : metrics()) {
    const std::optional<double> value = epoch[metric];
    const bool is_main = metric.column <= kLastCommonColumn;
    const bool is_told = is_main || metric.part != MetricPart::kTraining || !is_validated(epoch);
    if (value && metric.line_importance > 0 && is_told)
      visit(metric, fmt::format("{} {}", metric.brief, metric_text(metric, value)));
  }
  for (const auto& [metric, value] : epoch.values) {
    if (find_metric(metric->key) == nullptr)
      visit(*metric, printable_line(fmt::format("{} {}", metric->brief, metric_text(*metric, value))));
  }
}

// The pieces of an ended run's line as a table of one row.
TextTable pieces_of(const RunRecord& run) {
  TextTable pieces;
  pieces.rows.emplace_back();
  const auto add = [&pieces](std::string text, int importance) {
    pieces.columns.push_back({.title = "", .right_aligned = false, .importance = importance});
    pieces.rows[0].push_back(std::move(text));
  };
  if (const auto epoch = result_values(run))
    for_each_piece(*epoch,
                   [&](const Metric& metric, std::string text) { add(text, metric.line_importance); });
  for (const Metric& metric : metrics()) {
    const auto value = metric.part == MetricPart::kTest ? run_metric(run, metric) : std::nullopt;
    if (value && metric.line_importance > 0)
      add(fmt::format("{} {}", metric.brief, metric_text(metric, value)), metric.line_importance);
  }
  if (run.run_seconds) add(human_seconds(*run.run_seconds), 4);
  return pieces;
}

// The row without titles: so many columns at most, but the two most important pieces in any case.
std::string fitted_text(TextTable pieces, int room) {
  std::vector<int> importances;
  for (const Column& column : pieces.columns) importances.push_back(column.importance);
  std::ranges::sort(importances, std::ranges::greater());
  std::size_t kept = 0;
  for (Column& column : pieces.columns) {
    if (importances.size() > 1 && column.importance >= importances[1] && kept++ < 2)
      column.importance = kNeeded;
  }
  pieces.fit(room);
  std::string text;
  for (const std::string& cell : padded_cells(pieces, pieces.widths(), pieces.rows[0])) text += cell;
  return text;
}

// The run's name in so many columns: only the values of its keys, which the live table names in the same
// order, if not all of it fits.
std::string short_name(const RunRecord& run, int columns, bool unicode) {
  std::string name = printable(run.name);
  if (display_width(name) > columns) {
    std::string values;
    for (const auto& [key, value] : run.params) {
      if (has_key(run.name, key)) values += (values.empty() ? "" : ", ") + printable(param_text(value));
    }
    if (!values.empty()) name = values;
  }
  return fit_width(name, columns, unicode);
}

// The width of the widest of the names at hand, so that the metrics after them are aligned.
int widest_name(const LiveSweep& sweep) {
  int width = 0;
  sweep.for_each_known([&width](const std::string& name, const Params&) {
    width = std::max(width, display_width(printable(name)));
  });
  return width;
}

std::string completed_line(const LiveSweep& sweep, const RunRecord& run, const Terminal& terminal,
                           std::string_view mark) {
  constexpr int kShortestName = 12, kMarkWidth = 2;
  const int room = std::max(kShortestName, terminal.width() - 1 - kMarkWidth);
  const int wanted = std::max(widest_name(sweep), display_width(printable(run.name)));
  const std::string metrics = fitted_text(pieces_of(run), room - wanted);
  const int name_width = std::min(wanted, std::max(kShortestName, room - display_width(metrics)));
  std::string line =
      std::string(mark) + padded(short_name(run, name_width, terminal.unicode), name_width) + metrics;
  if (!run.stop_reason.empty())
    line += painted(terminal, kDim, "  stopped early: " + printable(run.stop_reason));
  return line;
}

}  // namespace

std::vector<std::string> live_table(const LiveSweep& sweep, const Terminal& terminal) {
  const int width = std::max(1, terminal.width() - 1);  // The last column would wrap on some terminals.
  const int height = std::clamp(terminal.height() / 4, kFewestLines, kMaxLines);
  LiveRuns runs;
  for (const auto& [number, run] : sweep.active) runs.push_back(&run);
  const std::size_t room = static_cast<std::size_t>(height) - 2;  // besides the sweep's line and the titles
  std::string more;
  if (runs.size() > room) {
    more = fmt::format("  and {} more runs in training", runs.size() - (room - 1));
    runs.resize(room - 1);
  }
  std::vector<std::string> lines = {sweep_line(sweep, terminal, width)};
  if (!runs.empty()) {
    for (std::string& line : run_lines(sweep, runs, terminal, width)) lines.push_back(std::move(line));
  }
  if (!more.empty()) lines.push_back(painted(terminal, kDim, more));
  Terminal plain = terminal;
  plain.color = false;
  const bool is_last = !sweep.latest.empty() && sweep.best && sweep.latest.back().name == sweep.best->name;
  if (sweep.best && !is_last && static_cast<int>(lines.size()) < height)
    lines.push_back(painted(terminal, kDim, ended_line(sweep, *sweep.best, plain)));
  for (std::string& line : lines) line = fit_width(line, width, terminal.unicode);
  return lines;
}

std::string epoch_line(const LiveSweep& sweep, const LiveRun& run, const EpochRecord& epoch) {
  std::string line = fmt::format("[{}/{}] {}  epoch {}{}", run.number, sweep.runs, printable(run.name),
                                 epoch.epoch, run.of_epochs());
  for_each_piece(epoch, [&line](const Metric&, const std::string& piece) { line += "  " + piece; });
  if (const auto seconds = epoch["epoch_seconds"]) line += "  " + human_seconds(*seconds);
  if (const auto rate = epoch["images_per_second"]) line += fmt::format("  {} img/s", human_count(*rate));
  return line;
}

std::string ended_line(const LiveSweep& sweep, const RunRecord& run, const Terminal& terminal) {
  if (run.status == RunStatus::kCompleted) {
    const bool is_best = sweep.best && sweep.best->name == run.name;
    const std::string_view mark =
        is_best ? (terminal.unicode ? "★ " : "* ") : (terminal.unicode ? "✓ " : "+ ");
    return completed_line(sweep, run, terminal, painted(terminal, kGreen, mark));
  }
  const bool is_failure = run.status == RunStatus::kFailed;
  const std::string_view mark = terminal.unicode ? (is_failure ? "✗ " : "– ") : (is_failure ? "x " : "- ");
  const std::string_view color = is_failure ? kRed : kYellow;
  return painted(terminal, color, mark) + printable(run.name) + "  " +
         painted(terminal, color, to_string(run.status)) + (run.error ? ": " + printable(*run.error) : "");
}

}  // namespace sweep
