#include "runmanager/terminal/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/base/printable.h"
#include "runmanager/terminal/best_run.h"
#include "runmanager/terminal/repeats_table.h"
#include "runmanager/terminal/table_columns.h"
#include "runmanager/terminal/terminal.h"
#include "runmanager/terminal/text_table.h"

namespace sweep {
namespace {

// Sets the cells and widths of the columns. Removes columns without any value.
std::vector<ResultColumn> fill_columns(std::vector<ResultColumn> columns,
                                       const std::vector<RunRecord>& runs) {
  for (ResultColumn& column : columns) {
    bool used = false;
    column.title = printable(column.title);
    column.width = display_width(column.title);
    for (const RunRecord& run : runs) {
      column.cells.push_back(printable(column.text(run)));
      used |= !column.cells.back().empty();
      column.width = std::max(column.width, display_width(column.cells.back()));
    }
    if (!used) column.width = 0;
  }
  std::erase_if(columns, [](const ResultColumn& column) { return column.width == 0; });
  return columns;
}

// With the gap in front, where the best run has its star.
int total_width(const std::vector<ResultColumn>& columns) {
  int width = 0;
  for (const ResultColumn& column : columns) width += column.width + kTableGap;
  return width;
}

// Escape sequences of colours; all empty without colours.
struct Colors {
  std::string_view dim, bold, red, yellow, green, off;
};

Colors colors_if(bool wanted) {
  if (!wanted) return {};
  return {"\x1b[2m", "\x1b[1m", "\x1b[31m", "\x1b[33m", "\x1b[32m", "\x1b[0m"};
}

std::string_view status_color(const Colors& colors, RunStatus status) {
  switch (status) {
    case RunStatus::kFailed:
      return colors.red;
    case RunStatus::kSkipped:
    case RunStatus::kInterrupted:
      return colors.yellow;
    case RunStatus::kPending:
    case RunStatus::kPruned:
      return colors.dim;
    default:
      return "";
  }
}

std::string first_line(std::string_view text) {
  std::string line(text.substr(0, text.find('\n')));
  return printable(line) + (line.size() < text.size() ? " …" : "");
}

// Whether the rows can be told apart without this column.
bool is_needed(const ResultColumn& column, const std::vector<ResultColumn>& columns) {
  if (column.importance >= kAlwaysShown) return true;
  if (column.importance != kVaryingParameter) return false;
  return std::count_if(columns.begin(), columns.end(),
                       [](const ResultColumn& other) { return other.importance == kVaryingParameter; }) == 1;
}

// Leaves out the least important columns until the table fits into `width`; 0: no limit. Returns their
// titles.
std::vector<std::string> fit_columns(std::vector<ResultColumn>& columns, int width) {
  std::vector<std::string> left_out;
  while (width > 0 && total_width(columns) > width) {
    auto least = columns.end();
    for (auto column = columns.begin(); column != columns.end(); ++column) {
      if (is_needed(*column, columns)) continue;
      if (least == columns.end() || column->importance < least->importance ||
          (column->importance == least->importance && column->width > least->width))
        least = column;
    }
    if (least == columns.end()) break;
    left_out.push_back(least->title);
    columns.erase(least);
  }
  return left_out;
}

// Whether the run has nothing but a reason to show, which then stands where its results would be.
bool has_only_reason(const RunRecord& run) { return run.epochs.empty() && run.error; }

TextTable text_table(const std::vector<RunRecord>& runs, const std::vector<ResultColumn>& columns) {
  TextTable table;
  for (const ResultColumn& column : columns) {
    table.header.push_back(column.title);
    table.right_aligned.push_back(column.right_aligned);
  }
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::vector<std::string> cells;
    for (const ResultColumn& column : columns) {
      if (has_only_reason(runs[i]) && !column.leads) break;
      cells.push_back(column.cells[i]);
    }
    table.rows.push_back(std::move(cells));
    table.tails.push_back(runs[i].error ? first_line(*runs[i].error) : "");
  }
  return table;
}

// The run's line of the table as it is shown, without colours: a reason is cut to the room there is.
std::string shown(std::string line, const RunRecord& run, bool is_best, const TableOptions& options) {
  if (is_best) line.replace(0, kTableGap, options.unicode ? "★ " : "* ");
  return options.width > 0 && run.error ? fit_width(line, options.width, options.unicode) : line;
}

}  // namespace

std::string human_seconds(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  if (seconds < 0.5e-6) return "0 ms";
  if (seconds < 0.0095e-3) return fmt::format("{:.3f} ms", seconds * 1e3);
  if (seconds < 0.095e-3) return fmt::format("{:.2f} ms", seconds * 1e3);
  if (seconds < 0.0095) return fmt::format("{:.1f} ms", seconds * 1e3);
  if (seconds < 0.9995) return fmt::format("{:.0f} ms", seconds * 1e3);
  if (seconds < 9.995) return fmt::format("{:.2f} s", seconds);
  if (seconds < 59.95) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{} m {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} m", whole / 3600, whole % 3600 / 60);
}

std::string human_count(double count) {
  if (!std::isfinite(count) || count < 0) return "?";
  if (count < 9.995) return fmt::format("{:.2f}", count);
  if (count < 99.95) return fmt::format("{:.1f}", count);
  if (count < 999.5) return fmt::format("{:.0f}", count);
  for (const char* unit : {"k", "M", "G"}) {
    count /= 1000;
    if (count < 9.995) return fmt::format("{:.2f}{}", count, unit);
    if (count < 99.95) return fmt::format("{:.1f}{}", count, unit);
    if (count < 999.5) return fmt::format("{:.0f}{}", count, unit);
  }
  return fmt::format("{:.0f}G", count);
}

std::string results_table(const std::vector<RunRecord>& runs, const std::vector<std::string>& keys,
                          const TableOptions& options) {
  std::vector<ResultColumn> columns = table_columns(runs, keys);
  if (!options.columns.empty()) columns = chosen_columns(columns, options.columns);
  columns = fill_columns(std::move(columns), runs);
  const std::vector<std::string> left_out = fit_columns(columns, options.width);
  const Colors colors = colors_if(options.color);
  const std::optional<std::size_t> best = best_run(runs);
  const TableLines lines = table_lines(text_table(runs, columns), options.unicode);
  std::string table = fmt::format("{}{}{}\n{}{}{}\n", colors.bold, lines.titles, colors.off, colors.dim,
                                  lines.rule, colors.off);
  std::map<std::string, std::size_t> skipped;  // by reason
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].status == RunStatus::kPending) continue;  // After an early stop they would fill the screen.
    if (runs[i].status == RunStatus::kSkipped && !options.skipped) {
      ++skipped[runs[i].error.value_or("")];
      continue;
    }
    const bool is_best = best == i;
    const std::string line = shown(lines.rows[i], runs[i], is_best, options);
    const std::string_view color = is_best ? colors.green : status_color(colors, runs[i].status);
    table += color.empty() ? line + "\n" : fmt::format("{}{}{}\n", color, line, colors.off);
  }
  const auto note = [&](const std::string& text, std::string_view color) {
    const std::string line = "  " + text;
    table +=
        fmt::format("{}{}{}\n", color,
                    options.width > 0 ? fit_width(line, options.width, options.unicode) : line, colors.off);
  };
  const auto runs_text = [](std::size_t count) {
    return fmt::format("{} run{}", count, count == 1 ? "" : "s");
  };
  for (const auto& [reason, count] : skipped)
    note(fmt::format("{} skipped: {}", runs_text(count), first_line(reason)), colors.yellow);
  const auto pending = std::count_if(runs.begin(), runs.end(),
                                     [](const RunRecord& run) { return run.status == RunStatus::kPending; });
  if (pending > 0)
    note(fmt::format("{} not started", runs_text(static_cast<std::size_t>(pending))), colors.dim);
  if (best && runs.size() > 1)
    note(fmt::format("{} {}", options.unicode ? "★" : "*", best_run_means(runs)), colors.dim);
  if (any_shared(runs)) note("~ timed while runs shared the machine", colors.dim);
  std::string line = left_out.empty() ? "" : "left out for want of room:";
  for (const std::string& title : left_out) {
    if (options.width > 0 && display_width(line + title) + 4 > options.width) {
      note(line, colors.dim);
      line = " ";
    }
    line += " " + title + (title == left_out.back() ? "" : ",");
  }
  if (!line.empty()) note(line, colors.dim);
  return table + repeats_table(runs, keys, options.unicode, options.width);
}

}  // namespace sweep
