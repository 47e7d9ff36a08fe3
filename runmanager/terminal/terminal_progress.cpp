#include "runmanager/terminal/terminal_progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/printable.h"
#include "runmanager/terminal/table.h"

namespace sweep {
namespace {

constexpr double kSecondsBetweenDraws = 0.1;

constexpr std::size_t kMaxRunLines = 16;  // Further active runs have no line.
constexpr int kPercentWidth = 7;
constexpr int kDetailsWidth = 60;  // room for loss, accuracy, time left and both speeds

// Parameters of the escape sequence SGR, "ESC [ n m" (ECMA-48).
constexpr std::string_view kBold = "1", kDim = "2", kRed = "31", kGreen = "32", kYellow = "33", kCyan = "36";

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

// "7 s", "1 m 05 s". Tenths would flicker with every redraw.
std::string whole_seconds(double seconds) {
  return seconds < 59.5 ? fmt::format("{:.0f} s", std::floor(seconds)) : human_seconds(seconds);
}

std::string left_text(const std::optional<double>& seconds) {
  return seconds && *seconds > 0 ? whole_seconds(std::ceil(*seconds)) + " left" : "";
}

// Moves the cursor from the last of `lines` lines to the start of the first.
std::string cursor_up(int lines) { return lines > 1 ? fmt::format("\r\x1b[{}A", lines - 1) : "\r"; }

std::string metrics_text(const EpochRecord& epoch) {
  std::string text;
  if (epoch.epoch > 0) text = fmt::format("loss {:.4f}", epoch.loss);
  if (epoch.accuracy) text += fmt::format("  acc {:.2f}%", 100 * *epoch.accuracy);
  if (epoch.validation_loss)
    text += fmt::format("{}val loss {:.4f}", text.empty() ? "" : "  ", *epoch.validation_loss);
  if (epoch.validation_accuracy) text += fmt::format("  val acc {:.2f}%", 100 * *epoch.validation_accuracy);
  const bool validated = epoch.validation_loss.has_value();
  for (std::size_t i = 0; i < kMeasures.size(); ++i) {
    const std::optional<double>& value = (validated ? epoch.validation_measures : epoch.measures)[i];
    if (value)
      text += fmt::format("  {}{} {}", validated ? "val " : "", kMeasures[i].title,
                          measure_text(kMeasures[i], value));
  }
  return text;
}

}  // namespace

TerminalProgress::TerminalProgress(Terminal terminal, std::function<double()> clock, bool quiet,
                                   const std::string& sweep, std::size_t runs, double work)
    : Progress(std::move(clock), sweep, runs, work), terminal_(std::move(terminal)), quiet_(quiet) {}

TerminalProgress::~TerminalProgress() { clear(); }

void TerminalProgress::show_begin(const RunPlan&) {}

void TerminalProgress::show_epoch(const LiveRun& run, const EpochRecord& epoch) {
  if (quiet_ || terminal_.interactive) return;
  const std::string place = fmt::format("[{}/{}] {}  epoch {}/{}  {}", run.number, state().runs,
                                        printable(run.name), epoch.epoch, run.epochs, metrics_text(epoch));
  write_line(epoch.epoch == 0 ? place
                              : fmt::format("{}  {}  {} img/s", place, human_seconds(epoch.epoch_seconds),
                                            human_count(epoch.images_per_second)));
}

void TerminalProgress::show_end(std::size_t number, const RunRecord& run) {
  if (quiet_ && run.status != RunStatus::kFailed) return;
  const bool completed = run.status == RunStatus::kCompleted;
  const std::string stopped = run.stop_reason.empty() ? "" : "stopped early: " + printable(run.stop_reason);
  if (completed && !terminal_.interactive) {  // Its epochs have a line each.
    if (!stopped.empty())
      write_line(fmt::format("[{}/{}] {}  {}", number, state().runs, printable(run.name), stopped));
    return;
  }
  if (completed) {
    std::string line = paint(kGreen, terminal_.unicode ? "✓ " : "+ ") + printable(run.name);
    if (!run.epochs.empty()) line += "  " + metrics_text(run.epochs.back());
    if (run.run_seconds) line += paint(kDim, "  " + human_seconds(*run.run_seconds));
    if (!stopped.empty()) line += paint(kDim, "  " + stopped);
    write_line(line);
    return;
  }
  const bool is_failure = run.status == RunStatus::kFailed;
  const std::string mark = terminal_.unicode ? (is_failure ? "✗ " : "– ") : (is_failure ? "x " : "- ");
  const std::string place = terminal_.interactive ? mark : fmt::format("[{}/{}] ", number, state().runs);
  const std::string_view color = is_failure ? kRed : kYellow;
  write_line(paint(color, place) + printable(run.name) + "  " + paint(color, to_string(run.status)) +
             (run.error ? ": " + printable(*run.error) : ""));
}

void TerminalProgress::show_kept(std::size_t count) {
  if (quiet_) return;
  write_line(paint(kDim, fmt::format("{} finished run{} kept", count, count == 1 ? "" : "s")));
}

void TerminalProgress::message(std::string_view line) { write_line(printable(line)); }

// Writes the line above the bars: erases them, and makes the next draw due.
void TerminalProgress::write_line(std::string_view line) {
  clear();
  terminal_.write(std::string(line) + "\n");
  next_draw_ = 0;
}

void TerminalProgress::clear() {
  if (drawn_lines_ == 0) return;
  terminal_.write(cursor_up(drawn_lines_) + "\x1b[J");
  drawn_lines_ = 0;
}

void TerminalProgress::show_change(double now) {
  if (!has_bars() || now < next_draw_) return;
  next_draw_ = now + kSecondsBetweenDraws;
  draw();
}

// Draws over the lines of the last time, so that nothing flickers: cursor to their start, new text, and "ESC
// [ K" erases the rest of each old line. A single active run has a line for its name and one for its bar;
// several have one line each. The last line is the sweep's.
void TerminalProgress::draw() {
  const int width = std::max(1, terminal_.width() - 1);  // The last column would wrap on some terminals.
  const LiveSweep& sweep = state();
  std::vector<std::string> lines;
  std::vector<const LiveRun*> runs;
  for (const auto& [number, run] : sweep.active) {
    if (run.has_begun) runs.push_back(&run);
  }
  if (runs.size() == 1)
    lines.push_back(paint(kCyan, fit_width(printable(runs[0]->name), width, terminal_.unicode)));
  for (std::size_t i = 0; i < std::min(runs.size(), kMaxRunLines); ++i)
    lines.push_back(run_line(*runs[i], width, runs.size() > 1));
  lines.push_back(sweep_line(sweep, width));
  std::string text;
  if (drawn_lines_ > static_cast<int>(lines.size())) clear();  // Otherwise old lines would stay below.
  if (drawn_lines_ > 0) text = cursor_up(drawn_lines_);
  for (std::size_t i = 0; i < lines.size(); ++i) text += (i == 0 ? "" : "\n") + lines[i] + "\x1b[K";
  terminal_.write(text);
  drawn_lines_ = static_cast<int>(lines.size());
}

// The line with the bar. `with_name`: there are several active runs. A single one has its name above.
std::string TerminalProgress::run_line(const LiveRun& run, int width, bool with_name) const {
  std::vector<std::string> details;
  if (with_name)
    details.push_back(
        paint(kCyan, fit_width(printable(run.name), std::max(16, width / 3), terminal_.unicode)));
  if (run.loss) details.push_back(fmt::format("loss {:.4f}", *run.loss));
  if (run.accuracy) details.push_back(fmt::format("acc {:5.2f}%", 100 * *run.accuracy));
  details.push_back(!run.phase.empty() ? run.phase : left_text(run.seconds_left()));
  if (run.phase.empty() && run.samples_per_second) {
    details.push_back(paint(kDim, human_count(*run.batches_per_second) + " it/s"));
    details.push_back(paint(kDim, human_count(*run.samples_per_second) + " img/s"));
  }
  const std::string epoch =
      fmt::format("epoch {}/{}", std::min(run.finished_epochs + 1, run.epochs), run.epochs);
  return bar_line(epoch, run.epoch_fraction(), details, width);
}

std::string TerminalProgress::sweep_line(const LiveSweep& sweep, int width) const {
  const auto training = static_cast<std::size_t>(std::count_if(
      sweep.active.begin(), sweep.active.end(), [](const auto& run) { return run.second.has_begun; }));
  const std::size_t failed = sweep.count(RunStatus::kFailed), skipped = sweep.count(RunStatus::kSkipped);
  std::vector<std::string> details;
  details.push_back(left_text(sweep.seconds_left()));
  if (failed > 0) details.push_back(paint(kRed, fmt::format("{} failed", failed)));
  if (skipped > 0) details.push_back(paint(kYellow, fmt::format("{} skipped", skipped)));
  if (sweep.kept > 0) details.push_back(fmt::format("{} kept", sweep.kept));
  details.push_back(paint(kDim, whole_seconds(sweep.seconds) + " so far"));
  details.push_back(paint(kDim, printable(sweep.name)));
  return bar_line(fmt::format("run {}/{}", std::min(sweep.finished() + training, sweep.runs), sweep.runs),
                  sweep.fraction(), details, width);
}

// "epoch 2/3     ━━━━━━╸━━━━━━  43%  …". All counters have the same width, so the bars are aligned.
std::string TerminalProgress::bar_line(const std::string& counter, double fraction,
                                       const std::vector<std::string>& details, int width) const {
  const int counter_width = std::max(12, display_width(counter) + 2);
  const int bar_width = std::clamp(width - counter_width - kPercentWidth - kDetailsWidth, 8, 40);
  std::string line = paint(kBold, padded(counter, counter_width)) + bar(fraction, bar_width) +
                     fmt::format(" {:3.0f}%  ", std::floor(100 * fraction));
  return fit_width(line + join_fitting(details, width - display_width(line)), width, terminal_.unicode);
}

std::string TerminalProgress::bar(double fraction, int width) const {
  const int halves = static_cast<int>(std::floor(std::clamp(fraction, 0.0, 1.0) * 2 * width));
  std::string full, rest;
  if (!terminal_.unicode) {
    full.assign(static_cast<std::size_t>(halves / 2), '#');
    rest.assign(static_cast<std::size_t>(width - halves / 2), '-');
    return paint(kGreen, full) + paint(kDim, rest);
  }
  for (int i = 0; i < halves / 2; ++i) full += "━";
  if (halves % 2 != 0) full += "╸";
  // The rest is dim; without colours it is a thin line instead.
  for (int i = (halves + 1) / 2; i < width; ++i) rest += terminal_.color ? "━" : "─";
  return paint(kGreen, full) + paint(kDim, rest);
}

std::string TerminalProgress::paint(std::string_view code, std::string_view text) const {
  if (!terminal_.color || text.empty()) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

}  // namespace sweep
