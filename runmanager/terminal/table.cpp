#include "runmanager/terminal/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "runmanager/config/run_name.h"
#include "runmanager/terminal/terminal.h"

namespace sweep {
namespace {

constexpr int kGap = 2;  // blanks between columns

struct Column {
  std::string title;
  std::function<std::string(const RunRecord&)> text;
  bool right = true;
  int importance = 0;  // the smallest goes first where the terminal is narrow
  std::vector<std::string> cells = {};
  int width = 0;
};

std::string number(std::optional<double> value, const char* format) {
  return value ? fmt::format(fmt::runtime(format), *value) : "";
}

std::string percent(std::optional<double> part) {
  if (!part) return "";
  return std::isfinite(*part) ? fmt::format("{:.2f}%", 100 * *part) : fmt::format("{}", *part);
}

const EpochRecord* last_epoch(const RunRecord& run) {
  return run.epochs.empty() ? nullptr : &run.epochs.back();
}

std::optional<double> metric(const RunRecord& run, const std::string& name) {
  const auto at = run.metrics.find(name);
  return at != run.metrics.end() ? std::optional(at->second) : std::nullopt;
}

// A column of the last epoch's values; empty for a run without epochs.
auto of_last_epoch(std::function<std::string(const EpochRecord&)> text) {
  return [text = std::move(text)](const RunRecord& run) {
    const EpochRecord* last = last_epoch(run);
    return last != nullptr ? text(*last) : std::string();
  };
}

bool looks_numeric(const ParamValue& value) {
  return std::holds_alternative<std::int64_t>(value) || std::holds_alternative<double>(value);
}

Column param_column(const std::string& key, const std::vector<RunRecord>& runs) {
  const auto find = [key](const RunRecord& run) -> const ParamValue* {
    for (const auto& [name, value] : run.params) {
      if (name == key) return &value;
    }
    return nullptr;
  };
  const bool numeric = std::all_of(runs.begin(), runs.end(), [&find](const RunRecord& run) {
    const ParamValue* value = find(run);
    return value == nullptr || looks_numeric(*value);
  });
  const auto text = [find](const RunRecord& run) {
    const ParamValue* value = find(run);
    return value != nullptr ? fit_width(param_text(*value), 32) : std::string();
  };
  return {key, text, numeric, 1000};
}

double mean_epoch_seconds(const RunRecord& run) {
  double total = 0;
  for (const EpochRecord& epoch : run.epochs) total += epoch.epoch_seconds;
  return total / static_cast<double>(run.epochs.size());
}

// A time that says more of the machine than of the run.
std::string marked(const RunRecord& run, const std::string& time) { return run.jobs > 1 ? "~" + time : time; }

std::vector<Column> all_columns(const std::vector<RunRecord>& runs, const std::vector<std::string>& keys) {
  std::vector<Column> columns;
  for (const std::string& key : keys) columns.push_back(param_column(key, runs));
  if (keys.empty()) columns.push_back({"run", [](const RunRecord& run) { return run.name; }, false, 1000});
  columns.push_back(
      {"status", [](const RunRecord& run) { return std::string(to_string(run.status)); }, false, 900});
  columns.push_back(
      {"epochs",
       [](const RunRecord& run) { return run.epochs.empty() ? "" : std::to_string(run.epochs.size()); }, true,
       200});
  columns.push_back(
      {"loss", of_last_epoch([](const EpochRecord& e) { return number(e.loss, "{:.4f}"); }), true, 700});
  columns.push_back(
      {"accuracy", of_last_epoch([](const EpochRecord& e) { return percent(e.accuracy); }), true, 800});
  columns.push_back({"val loss",
                     of_last_epoch([](const EpochRecord& e) { return number(e.validation_loss, "{:.4f}"); }),
                     true, 400});
  columns.push_back({"val acc",
                     of_last_epoch([](const EpochRecord& e) { return percent(e.validation_accuracy); }), true,
                     750});
  columns.push_back(
      {"test acc", [](const RunRecord& run) { return percent(metric(run, "test_accuracy")); }, true, 600});
  columns.push_back({"s/epoch",
                     [](const RunRecord& run) {
                       return run.epochs.empty() ? "" : marked(run, human_seconds(mean_epoch_seconds(run)));
                     },
                     true, 500});
  columns.push_back({"img/s",
                     [](const RunRecord& run) {
                       return run.epochs.empty()
                                  ? ""
                                  : marked(run, human_count(run.epochs.back().images_per_second));
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

// Fills in cells and widths; a column without any value is left out.
std::vector<Column> measured(std::vector<Column> columns, const std::vector<RunRecord>& runs) {
  for (Column& column : columns) {
    bool used = false;
    column.width = display_width(column.title);
    for (const RunRecord& run : runs) {
      column.cells.push_back(column.text(run));
      used |= !column.cells.back().empty();
      column.width = std::max(column.width, display_width(column.cells.back()));
    }
    if (!used) column.width = 0;
  }
  std::erase_if(columns, [](const Column& column) { return column.width == 0; });
  return columns;
}

int total_width(const std::vector<Column>& columns) {
  int width = 0;
  for (const Column& column : columns) width += column.width + kGap;
  return width;
}

std::string padded(const std::string& text, int width, bool right) {
  const std::string blanks(static_cast<std::size_t>(std::max(0, width - display_width(text))), ' ');
  return right ? blanks + text : text + blanks;
}

// What the terminal needs to know about one row.
struct Paint {
  std::string_view dim, bold, red, yellow, green, off;
};

Paint paint(bool color) {
  if (!color) return {};
  return {"\x1b[2m", "\x1b[1m", "\x1b[31m", "\x1b[33m", "\x1b[32m", "\x1b[0m"};
}

std::string_view status_color(const Paint& p, RunStatus status) {
  switch (status) {
    case RunStatus::kFailed:
      return p.red;
    case RunStatus::kSkipped:
    case RunStatus::kInterrupted:
      return p.yellow;
    case RunStatus::kPending:
      return p.dim;
    default:
      return "";
  }
}

std::string without_trailing_blanks(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

std::string one_line(std::string_view text) {
  std::string line(text.substr(0, text.find('\n')));
  return line.size() < text.size() ? line + " …" : line;
}

// The first line of an error, as much as there is room for behind `line`.
std::string reason(std::string_view error, const std::string& line, const TableOptions& options) {
  const std::string text = one_line(error);
  if (options.width == 0) return text;
  return fit_width(text, std::max(0, options.width - display_width(line)), options.unicode);
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

std::optional<std::size_t> best_run(const std::vector<RunRecord>& runs) {
  // (accuracy, −loss) on the validation set, else on the training set; never one compared with the other.
  const bool validated = std::any_of(runs.begin(), runs.end(), [](const RunRecord& run) {
    return run.status == RunStatus::kCompleted && last_epoch(run) != nullptr &&
           last_epoch(run)->validation_accuracy;
  });
  std::optional<std::size_t> best;
  std::pair<double, double> best_score;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const EpochRecord* last = last_epoch(runs[i]);
    if (runs[i].status != RunStatus::kCompleted || last == nullptr) continue;
    if (validated && !last->validation_accuracy) continue;
    const double accuracy = validated ? *last->validation_accuracy : last->accuracy;
    const double loss = validated && last->validation_loss ? *last->validation_loss : last->loss;
    const std::pair<double, double> score = {accuracy, -loss};
    if (std::isnan(accuracy) || std::isnan(loss)) continue;
    if (!best || score > best_score) {
      best = i;
      best_score = score;
    }
  }
  return best;
}

std::string results_table(const std::vector<RunRecord>& runs, const std::vector<std::string>& keys,
                          const TableOptions& options) {
  std::vector<Column> columns = measured(all_columns(runs, keys), runs);
  const std::string star = options.unicode ? "★ " : "* ";
  while (options.width > 0 && columns.size() > 1 && total_width(columns) > options.width) {
    const auto least = std::min_element(columns.begin(), columns.end(), [](const Column& a, const Column& b) {
      return a.importance < b.importance;
    });
    if (least->importance >= 900) break;
    columns.erase(least);
  }
  const Paint p = paint(options.color);
  const std::optional<std::size_t> best = best_run(runs);

  std::string header(kGap, ' '), rule(kGap, ' ');
  for (const Column& column : columns) {
    header += padded(column.title, column.width, column.right) + std::string(kGap, ' ');
    for (int i = 0; i < column.width; ++i) rule += options.unicode ? "─" : "-";
    rule += std::string(kGap, ' ');
  }
  std::string table = fmt::format("{}{}{}\n{}{}{}\n", p.bold, without_trailing_blanks(header), p.off, p.dim,
                                  without_trailing_blanks(rule), p.off);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunRecord& run = runs[i];
    if (run.status == RunStatus::kPending) continue;  // After an interrupt they would fill the screen.
    const bool is_best = best == i;
    std::string line = is_best ? star : std::string(kGap, ' ');
    bool reason_shown = false;
    for (const Column& column : columns) {
      // A run without epochs has nothing behind its status but the reason.
      if (run.epochs.empty() && run.error && column.importance < 900) {
        line += reason(*run.error, line, options);
        reason_shown = true;
        break;
      }
      line += padded(column.cells[i], column.width, column.right) + std::string(kGap, ' ');
    }
    line = without_trailing_blanks(line);
    if (run.error && !reason_shown) {
      line += std::string(kGap, ' ');
      line += reason(*run.error, line, options);
    }
    const std::string_view color = is_best ? p.green : status_color(p, run.status);
    table += color.empty() ? line + "\n" : fmt::format("{}{}{}\n", color, line, p.off);
  }
  const auto pending = std::count_if(runs.begin(), runs.end(),
                                     [](const RunRecord& run) { return run.status == RunStatus::kPending; });
  if (pending > 0) {
    table += fmt::format("  {}{} run{} not started{}\n", p.dim, pending, pending == 1 ? "" : "s", p.off);
  }
  if (any_shared(runs)) table += fmt::format("  {}~ timed while runs shared the machine{}\n", p.dim, p.off);
  return table;
}

}  // namespace sweep
