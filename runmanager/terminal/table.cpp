#include "runmanager/terminal/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "core/base/printable.h"
#include "runmanager/terminal/best_run.h"
#include "runmanager/terminal/repeats_table.h"
#include "runmanager/terminal/terminal.h"

namespace sweep {
namespace {

constexpr int kGap = 2;  // blanks between columns

// On a narrow terminal the columns of the least importance are left out, and of equal ones the widest: first
// parameters that do not vary, then times, then other parameters, then metrics. Never those from kAlwaysShown
// on: the status, and the last parameter that tells the runs apart.
constexpr int kConstantParameter = 10, kVaryingParameter = 320, kAlwaysShown = 900;

struct Column {
  std::string title;
  std::function<std::string(const RunRecord&)> text;
  bool right_aligned = true;
  int importance = 0;
  bool leads = false;                   // stands before the results, where a run without them has its reason
  std::vector<std::string> cells = {};  // by run
  int width = 0;                        // display columns
};

std::string number(std::optional<double> value, const char* format) {
  return value ? fmt::format(fmt::runtime(format), *value) : "";
}

std::string percent(std::optional<double> fraction) {
  if (!fraction) return "";
  return std::isfinite(*fraction) ? fmt::format("{:.2f}%", 100 * *fraction) : fmt::format("{}", *fraction);
}

// The text of a cell from the last epoch's record; "" for a run without epochs.
auto from_last_epoch(std::function<std::string(const EpochRecord&)> text) {
  return [text = std::move(text)](const RunRecord& run) {
    const EpochRecord* last = last_epoch(run);
    return last != nullptr ? text(*last) : std::string();
  };
}

bool is_number(const ParamValue& value) {
  return std::holds_alternative<std::int64_t>(value) || std::holds_alternative<double>(value);
}

Column param_column(const std::string& key, const std::vector<RunRecord>& runs) {
  const bool numeric = std::all_of(runs.begin(), runs.end(), [&key](const RunRecord& run) {
    const ParamValue* value = find_param(run.params, key);
    return value == nullptr || is_number(*value);
  });
  const auto text = [key](const RunRecord& run) { return fit_width(param_text(run.params, key), 32); };
  const bool varies = std::any_of(runs.begin(), runs.end(),
                                  [&](const RunRecord& run) { return text(run) != text(runs.front()); });
  return {key, text, numeric, varies ? kVaryingParameter : kConstantParameter, true};
}

// Over all epochs, as the mean time of an epoch is.
double mean_images_per_second(const RunRecord& run) {
  double images = 0, seconds = 0;
  for (const EpochRecord& epoch : run.epochs) {
    images += epoch.images_per_second * epoch.epoch_seconds;
    seconds += epoch.epoch_seconds;
  }
  return images / seconds;
}

// Marks a time of a run that shared the machine with others: it was longer than it would be alone.
std::string mark_if_shared(const RunRecord& run, const std::string& time) {
  return run.jobs > 1 ? "~" + time : time;
}

// "12", or "5 of 12" for a run that was stopped early.
std::string epochs_text(const RunRecord& run) {
  if (run.epochs.empty()) return "";
  const std::string epochs = std::to_string(run.epochs.size());
  if (run.stop_reason.empty() || !run.config.is_object() || !run.config.contains("epochs")) return epochs;
  return fmt::format("{} of {}", epochs, run.config["epochs"].dump());
}

std::vector<Column> all_columns(const std::vector<RunRecord>& runs, const std::vector<std::string>& keys) {
  std::vector<Column> columns;
  for (const std::string& key : keys) columns.push_back(param_column(key, runs));
  if (keys.empty())
    columns.push_back({"run", [](const RunRecord& run) { return run.name; }, false, kAlwaysShown, true});
  columns.push_back({"status", [](const RunRecord& run) { return std::string(to_string(run.status)); }, false,
                     kAlwaysShown, true});
  columns.push_back({"epochs", [](const RunRecord& run) { return epochs_text(run); }, true, 200});
  columns.push_back(
      {"loss", from_last_epoch([](const EpochRecord& e) { return number(e.loss, "{:.4f}"); }), true, 700});
  columns.push_back(
      {"accuracy", from_last_epoch([](const EpochRecord& e) { return percent(e.accuracy); }), true, 800});
  columns.push_back(
      {"val loss", from_last_epoch([](const EpochRecord& e) { return number(e.validation_loss, "{:.4f}"); }),
       true, 400});
  columns.push_back({"val acc",
                     from_last_epoch([](const EpochRecord& e) { return percent(e.validation_accuracy); }),
                     true, 750});
  columns.push_back(
      {"test acc", [](const RunRecord& run) { return percent(metric_of(run, "test_accuracy")); }, true, 600});
  for (std::size_t i = 0; i < kMeasures.size(); ++i) {
    const std::string title(kMeasures[i].title), key = "test_" + std::string(kMeasures[i].key);
    const auto text = [i](const std::optional<double>& value) { return measure_text(kMeasures[i], value); };
    columns.push_back(
        {title, from_last_epoch([=](const EpochRecord& e) { return text(e.measures[i]); }), true, 350});
    columns.push_back({"val " + title,
                       from_last_epoch([=](const EpochRecord& e) { return text(e.validation_measures[i]); }),
                       true, 450});
    columns.push_back(
        {"test " + title, [=](const RunRecord& run) { return text(metric_of(run, key)); }, true, 550});
  }
  columns.push_back({"s/epoch",
                     [](const RunRecord& run) {
                       return run.epochs.empty()
                                  ? ""
                                  : mark_if_shared(run, human_seconds(mean_epoch_seconds(run)));
                     },
                     true, 500});
  columns.push_back({"img/s",
                     [](const RunRecord& run) {
                       return run.epochs.empty()
                                  ? ""
                                  : mark_if_shared(run, human_count(mean_images_per_second(run)));
                     },
                     true, 300});
  columns.push_back(
      {"setup",
       [](const RunRecord& run) { return run.setup_seconds ? human_seconds(*run.setup_seconds) : ""; }, true,
       90});
  columns.push_back(
      {"total", [](const RunRecord& run) { return run.run_seconds ? human_seconds(*run.run_seconds) : ""; },
       true, 100});
  return columns;
}

// Sets the cells and widths of the columns. Removes columns without any value.
std::vector<Column> fill_columns(std::vector<Column> columns, const std::vector<RunRecord>& runs) {
  for (Column& column : columns) {
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
  std::erase_if(columns, [](const Column& column) { return column.width == 0; });
  return columns;
}

// With the gap in front, where the best run has its star.
int total_width(const std::vector<Column>& columns) {
  int width = 0;
  for (const Column& column : columns) width += column.width + kGap;
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
bool is_needed(const Column& column, const std::vector<Column>& columns) {
  if (column.importance >= kAlwaysShown) return true;
  if (column.importance != kVaryingParameter) return false;
  return std::count_if(columns.begin(), columns.end(),
                       [](const Column& other) { return other.importance == kVaryingParameter; }) == 1;
}

// Leaves out the least important columns until the table fits into `width`; 0: no limit. Returns their
// titles.
std::vector<std::string> fit_columns(std::vector<Column>& columns, int width) {
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
std::string header(const std::vector<Column>& columns, const Colors& colors, const TableOptions& options) {
  const std::string gap(kGap, ' ');
  std::string titles = gap, rules = gap;
  for (const Column& column : columns) {
    titles += padded(column.title, column.width, column.right_aligned) + gap;
    rules += rule(column.width, options.unicode) + gap;
  }
  return fmt::format("{}{}{}\n{}{}{}\n", colors.bold, without_trailing_blanks(titles), colors.off, colors.dim,
                     without_trailing_blanks(rules), colors.off);
}

// The line of runs[index], without colours. A run that has an error ends with its reason. If it has no epochs
// either, the reason stands right after the status, where the other columns would be empty.
std::string row(const RunRecord& run, std::size_t index, bool is_best, const std::vector<Column>& columns,
                const TableOptions& options) {
  const std::string gap(kGap, ' ');
  std::string line = !is_best ? gap : options.unicode ? "★ " : "* ";
  for (const Column& column : columns) {
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
  std::vector<Column> columns = fill_columns(all_columns(runs, keys), runs);
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
