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

namespace sweep {
namespace {

constexpr int kGap = 2;  // blanks between columns

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
  for (const ResultColumn& column : columns) width += column.width + kGap;
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

std::string without_trailing_blanks(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

std::string first_line(std::string_view text) {
  std::string line(text.substr(0, text.find('\n')));
  return printable(line) + (line.size() < text.size() ? " …" : "");
}

// The first line of an error, cut to the room that is left after `line`.
std::string fit_reason(std::string_view error, const std::string& line, const TableOptions& options) {
  const std::string text = first_line(error);
  if (options.width == 0) return text;
  return fit_width(text, std::max(0, options.width - display_width(line)), options.unicode);
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

// The titles, and a rule below them.
std::string header(const std::vector<ResultColumn>& columns, const Colors& colors,
                   const TableOptions& options) {
  const std::string gap(kGap, ' ');
  std::string titles = gap, rules = gap;
  for (const ResultColumn& column : columns) {
    titles += padded(column.title, column.width, column.right_aligned) + gap;
    rules += rule(column.width, options.unicode) + gap;
  }
  return fmt::format("{}{}{}\n{}{}{}\n", colors.bold, without_trailing_blanks(titles), colors.off, colors.dim,
                     without_trailing_blanks(rules), colors.off);
}

// The line of runs[index], without colours. A run that has an error ends with its reason. If it has no epochs
// either, the reason stands right after the status, where the other columns would be empty.
std::string row(const RunRecord& run, std::size_t index, bool is_best,
                const std::vector<ResultColumn>& columns, const TableOptions& options) {
  const std::string gap(kGap, ' ');
  std::string line = !is_best ? gap : options.unicode ? "★ " : "* ";
  for (const ResultColumn& column : columns) {
    if (run.epochs.empty() && run.error && !column.leads) {
      line += fit_reason(*run.error, line, options);
      return without_trailing_blanks(line);
    }
    line += padded(column.cells[index], column.width, column.right_aligned) + gap;
  }
  line = without_trailing_blanks(line);
  if (run.error) {
    line += gap;
    line += fit_reason(*run.error, line, options);
  }
  return line;
}

}  // namespace

std::string human_seconds(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
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
  std::string table = header(columns, colors, options);
  std::map<std::string, std::size_t> skipped;  // by reason
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].status == RunStatus::kPending) continue;  // After an early stop they would fill the screen.
    if (runs[i].status == RunStatus::kSkipped && !options.skipped) {
      ++skipped[runs[i].error.value_or("")];
      continue;
    }
    const bool is_best = best == i;
    const std::string line = row(runs[i], i, is_best, columns, options);
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
  return table + repeats_table(runs, keys, options.unicode);
}

}  // namespace sweep
