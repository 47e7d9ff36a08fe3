#include "runmanager/terminal/live_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "core/base/printable.h"
#include "runmanager/terminal/ended_line.h"
#include "runmanager/terminal/table.h"
#include "runmanager/terminal/text_table.h"

namespace sweep {
namespace {

constexpr int kMostLines = 12, kFewestLines = 4;
constexpr int kShortestBar = 6, kLongestBar = 24, kPercentWidth = 5;

// Which column goes first where there is no room. Of the parameters, these are constant, vary in the sweep,
// or tell the runs of the table apart.
constexpr int kBatchRate = 5, kConstant = 10, kValidation = 20, kVarying = 25, kRate = 30, kTimeLeft = 40,
              kTelling = 50, kLoss = 60, kNeeded = 900;

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

struct LiveColumn {
  std::string title;
  std::vector<std::string> cells;  // by active run
  int importance = kNeeded;
  int min_width = 0;  // so that the columns stay where they are while the numbers change
  bool right_aligned = true;
  bool is_shown = true;
};

int width_of(const LiveColumn& column) {
  int width = std::max(column.min_width, display_width(column.title));
  for (const std::string& cell : column.cells) width = std::max(width, display_width(cell));
  return width;
}

int width_of(const std::vector<LiveColumn>& columns) {
  int width = 0;
  for (const LiveColumn& column : columns) width += column.is_shown ? kTableGap + width_of(column) : 0;
  return width;
}

// The columns before and behind the bar.
struct LiveColumns {
  std::vector<LiveColumn> before, behind;
  int width() const { return width_of(before) + width_of(behind); }
};

using LiveRuns = std::vector<const LiveRun*>;

template <typename Text>
LiveColumn column(const LiveRuns& runs, std::string title, int importance, int min_width, const Text& text) {
  LiveColumn result{.title = std::move(title), .cells = {}, .importance = importance, .min_width = min_width};
  for (const LiveRun* run : runs) result.cells.push_back(text(*run));
  return result;
}

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789.+-e") == std::string::npos;
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

LiveColumns columns_of(const LiveSweep& sweep, const LiveRuns& runs) {
  LiveColumns columns;
  const LiveKeys keys = keys_of(sweep);
  for (const std::string& key : keys.all) {
    LiveColumn params =
        column(runs, printable(key), param_importance(runs, keys, key), 0,
               [&key](const LiveRun& run) { return fit_width(printable(param_text(run.params, key)), 24); });
    params.right_aligned = std::all_of(params.cells.begin(), params.cells.end(), is_number);
    columns.before.push_back(std::move(params));
  }
  if (keys.all.empty()) {
    columns.before.push_back(
        column(runs, "run", kNeeded, 0, [](const LiveRun& run) { return printable(run.name); }));
    columns.before.back().right_aligned = false;
  }
  columns.before.push_back(column(runs, "epoch", kNeeded, 0, [](const LiveRun& run) {
    return run.has_begun ? fmt::format("{}/{}", std::min(run.finished_epochs + 1, run.epochs), run.epochs)
                         : "";
  }));
  const auto percent = [](const std::optional<double>& share) {
    return share ? fmt::format("{:.2f}%", 100 * *share) : "";
  };
  const bool has_accuracy =
      std::any_of(runs.begin(), runs.end(), [](const LiveRun* run) { return run->accuracy; });
  columns.behind = {
      column(runs, "loss", has_accuracy ? kLoss : kNeeded, 6,
             [](const LiveRun& run) { return run.loss ? fmt::format("{:.4f}", *run.loss) : ""; }),
      column(runs, "acc", kNeeded, 6, [&](const LiveRun& run) { return percent(run.accuracy); }),
      column(runs, "val loss", kValidation - 1, 6,
             [](const LiveRun& run) {
               return run.last && run.last->validation_loss
                          ? fmt::format("{:.4f}", *run.last->validation_loss)
                          : "";
             }),
      column(runs, "val acc", kValidation, 6,
             [&](const LiveRun& run) { return run.last ? percent(run.last->validation_accuracy) : ""; }),
      column(runs, "it/s", kBatchRate, 5,
             [](const LiveRun& run) {
               return run.batches_per_second ? human_count(*run.batches_per_second) : "";
             }),
      column(runs, "img/s", kRate, 5,
             [](const LiveRun& run) {
               return run.samples_per_second ? human_count(*run.samples_per_second) : "";
             }),
      column(runs, "left", kTimeLeft, 4, [](const LiveRun& run) { return left_text(run.seconds_left()); })};
  // These keep their place while nothing is known: a table that jumps cannot be read.
  const std::set<std::string> lasting = {"loss", "img/s", "left"};
  const bool is_validated = std::any_of(sweep.latest.begin(), sweep.latest.end(), [](const RunRecord& run) {
    return last_epoch(run) != nullptr && last_epoch(run)->validation_loss;
  });
  std::erase_if(columns.behind, [&](const LiveColumn& c) {
    if (lasting.contains(c.title) || (is_validated && c.importance <= kValidation && c.title != "it/s"))
      return false;
    return std::all_of(c.cells.begin(), c.cells.end(), [](const std::string& cell) { return cell.empty(); });
  });
  return columns;
}

// Hides columns until the rest is no wider than `width`: the least important first, and of equal ones the
// widest. What then fits after all comes back.
void fit_columns(LiveColumns& columns, int width) {
  std::vector<LiveColumn*> order;
  for (auto* side : {&columns.before, &columns.behind}) {
    for (LiveColumn& column : *side) {
      if (column.importance < kNeeded) order.push_back(&column);
    }
  }
  std::stable_sort(order.begin(), order.end(), [](const LiveColumn* a, const LiveColumn* b) {
    return std::pair(a->importance, -width_of(*a)) < std::pair(b->importance, -width_of(*b));
  });
  for (LiveColumn* column : order) {
    if (columns.width() <= width) break;
    column->is_shown = false;
  }
  for (auto column = order.rbegin(); column != order.rend(); ++column) {
    if ((*column)->is_shown || columns.width() + kTableGap + width_of(**column) > width) continue;
    (*column)->is_shown = true;
  }
}

std::string cells_text(const std::vector<LiveColumn>& columns, std::optional<std::size_t> row) {
  std::string text;
  for (const LiveColumn& column : columns) {
    if (!column.is_shown) continue;
    text += std::string(kTableGap, ' ') +
            padded(row ? column.cells[*row] : column.title, width_of(column), column.right_aligned);
  }
  return text;
}

// The titles and a line per run, the bar between the columns.
std::vector<std::string> run_lines(const LiveSweep& sweep, const LiveRuns& runs, const Terminal& terminal,
                                   int width) {
  LiveColumns columns = columns_of(sweep, runs);
  const int beside = kTableGap + kPercentWidth;  // the bar
  fit_columns(columns, width - beside - kShortestBar);
  const int bar_width = std::clamp(width - beside - columns.width(), kShortestBar, kLongestBar);
  const int progress_width = bar_width + kPercentWidth;
  const std::string gap(kTableGap, ' ');
  std::vector<std::string> lines;
  lines.push_back(painted(terminal, kDim,
                          cells_text(columns.before, std::nullopt) + gap + std::string(progress_width, ' ') +
                              cells_text(columns.behind, std::nullopt)));
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const LiveRun& run = *runs[i];
    const std::string progress =
        run.phase.empty()
            ? bar(terminal, run.epoch_fraction(), bar_width) + " " + percent_text(run.epoch_fraction())
            : painted(terminal, kDim, padded(fit_width(run.phase, progress_width), progress_width));
    lines.push_back(painted(terminal, kCyan, cells_text(columns.before, i)) + gap + progress +
                    cells_text(columns.behind, i));
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

}  // namespace

std::vector<std::string> live_table(const LiveSweep& sweep, const Terminal& terminal) {
  const int width = std::max(1, terminal.width() - 1);  // The last column would wrap on some terminals.
  const int height = std::clamp(terminal.height() / 4, kFewestLines, kMostLines);
  LiveRuns runs;
  for (const auto& [number, run] : sweep.active) runs.push_back(&run);
  const std::size_t room = static_cast<std::size_t>(height) - 2;  // beside the sweep's line and the titles
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

}  // namespace sweep
