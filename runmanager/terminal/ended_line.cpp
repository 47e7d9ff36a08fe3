#include "runmanager/terminal/ended_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "core/base/printable.h"
#include "runmanager/records/run_metric.h"
#include "runmanager/terminal/table.h"

namespace sweep {
namespace {

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
      if (run.name.starts_with(key + "=") || run.name.find("," + key + "=") != std::string::npos)
        values += (values.empty() ? "" : ", ") + printable(param_text(value));
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
  constexpr int kShortestName = 20, kMarkWidth = 2;
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

std::string metrics_text(const EpochRecord& epoch) {
  std::string text;
  for_each_piece(epoch, [&text](const Metric&, const std::string& piece) {
    text += (text.empty() ? "" : "  ") + piece;
  });
  return text;
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
