#include "runmanager/terminal/terminal_progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/printable.h"
#include "runmanager/terminal/live_rate.h"
#include "runmanager/terminal/table.h"

namespace sweep {
namespace {

constexpr double kSecondsBetweenDraws = 0.1;
// Before this fraction of the work, or this time, an estimate of the time left would be noise.
constexpr double kMinEstimateFraction = 0.005, kMinEstimateSeconds = 0.5;

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

// Assumes that the rest goes on at the mean speed so far.
std::string time_left(double fraction, double seconds) {
  if (fraction >= 1) return "";
  if (fraction < kMinEstimateFraction || seconds < kMinEstimateSeconds) return "";
  return whole_seconds(std::ceil(seconds / fraction * (1 - fraction))) + " left";
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

// The progress of one run. The training of the run reports to it, and a report may redraw all bars.
class TerminalProgress::ActiveRun final : public TrainingObserver {
 public:
  explicit ActiveRun(TerminalProgress& progress) : progress_(progress) {}

  void begin_run(const RunPlan& plan) override {
    plan_ = plan;
    plan_.name = printable(plan.name);
    started_ = true;
    epochs_done_ = plan.trained_epochs;
    phase_ = "start";
    run_start_ = progress_.clock_();
    progress_.draw_if_due();
  }

  void begin_epoch(int epoch) override {
    epochs_done_ = epoch - 1;
    batch_ = 0;
    totals_ = {};
    phase_.clear();
    resume_rates(progress_.clock_());
  }

  void batch(const Totals& totals, std::size_t count) override {
    batch_ += count;
    totals_ += totals;
    if (!progress_.has_bars()) return;
    const double now = progress_.clock_();
    batches_per_second_.add(static_cast<double>(count), now);
    samples_per_second_.add(static_cast<double>(totals.samples), now);
    progress_.draw_if_due();
  }

  void phase(std::string_view name) override {
    phase_ = name;
    const double now = progress_.clock_();
    batches_per_second_.pause(now);
    samples_per_second_.pause(now);
    progress_.draw_if_due();
  }

  void end_epoch(const EpochRecord& epoch) override {
    progress_.draw_if_due();
    if (progress_.quiet_ || progress_.terminal_.interactive) return;
    if (epoch.epoch == 0) {
      progress_.write_line(fmt::format("[{}/{}] {}  epoch 0/{}  {}", plan_.number, progress_.runs_,
                                       plan_.name, plan_.epochs, metrics_text(epoch)));
      return;
    }
    progress_.write_line(fmt::format("[{}/{}] {}  epoch {}/{}  {}  {}  {} img/s", plan_.number,
                                     progress_.runs_, plan_.name, epoch.epoch, plan_.epochs,
                                     metrics_text(epoch), human_seconds(epoch.epoch_seconds),
                                     human_count(epoch.images_per_second)));
  }

  bool started() const { return started_; }
  const std::string& name() const { return plan_.name; }
  // In samples times epochs. Epochs that an earlier start has trained count as done.
  double work() const { return static_cast<double>(plan_.samples) * plan_.epochs; }
  double work_done() const { return fraction() * work(); }

  // The line with the bar. `with_name`: there are several active runs. A single one has its name above.
  std::string line(int width, bool with_name) const {
    const double now = progress_.clock_();
    const auto samples = static_cast<double>(totals_.samples);
    std::vector<std::string> details;
    if (with_name)
      details.push_back(
          progress_.paint(kCyan, fit_width(name(), std::max(16, width / 3), progress_.terminal_.unicode)));
    if (totals_.samples > 0) {
      details.push_back(fmt::format("loss {:.4f}", totals_.loss / samples));
      if (plan_.has_classes)
        details.push_back(fmt::format("acc {:5.2f}%", 100 * static_cast<double>(totals_.correct) / samples));
    }
    // A resumed run has not trained the epochs before its first one, so they must not count for its speed.
    const double trained = fraction() - first_fraction(), whole = 1 - first_fraction();
    details.push_back(!phase_.empty() ? phase_
                                      : time_left(whole > 0 ? trained / whole : 1, now - run_start_));
    if (phase_.empty() && samples_per_second_.per_second()) {
      details.push_back(progress_.paint(kDim, human_count(*batches_per_second_.per_second()) + " it/s"));
      details.push_back(progress_.paint(kDim, human_count(*samples_per_second_.per_second()) + " img/s"));
    }
    const std::string epoch =
        fmt::format("epoch {}/{}", std::min(epochs_done_ + 1, plan_.epochs), plan_.epochs);
    return progress_.bar_line(epoch, epoch_fraction(), details, width);
  }

 private:
  void resume_rates(double now) {
    batches_per_second_.resume(now);
    samples_per_second_.resume(now);
  }
  // Of the epoch that the line names.
  double epoch_fraction() const {
    if (epochs_done_ >= plan_.epochs) return 1;
    return plan_.batches == 0
               ? 0
               : std::min(1.0, static_cast<double>(batch_) / static_cast<double>(plan_.batches));
  }
  // Of the run.
  double fraction() const {
    if (plan_.epochs == 0 || plan_.batches == 0) return 0;
    const double epochs = epochs_done_ + static_cast<double>(batch_) / static_cast<double>(plan_.batches);
    return std::min(1.0, epochs / plan_.epochs);
  }
  double first_fraction() const {
    return plan_.epochs == 0 ? 0 : static_cast<double>(plan_.trained_epochs) / plan_.epochs;
  }

  TerminalProgress& progress_;
  bool started_ = false;
  RunPlan plan_;
  double run_start_ = 0;
  LiveRate batches_per_second_, samples_per_second_;  // of training
  int epochs_done_ = 0;
  std::size_t batch_ = 0;
  std::string phase_;
  Totals totals_;
};

TerminalProgress::TerminalProgress(Terminal terminal, std::function<double()> clock, bool quiet,
                                   const std::string& sweep, std::size_t runs, double work)
    : terminal_(std::move(terminal)),
      clock_(std::move(clock)),
      quiet_(quiet),
      sweep_(printable(sweep)),
      runs_(runs),
      work_(work),
      start_(clock_()) {}

TerminalProgress::~TerminalProgress() { clear(); }

TrainingObserver& TerminalProgress::run(std::size_t number) {
  std::unique_ptr<ActiveRun>& run = active_[number];
  if (!run) run = std::make_unique<ActiveRun>(*this);
  return *run;
}

void TerminalProgress::end_run(std::size_t number, const RunRecord& run) {
  ++finished_;
  failed_ += run.status == RunStatus::kFailed;
  skipped_ += run.status == RunStatus::kSkipped;
  // For the time left, a run that ended early counts as all of its work.
  if (const auto active = active_.find(number); active != active_.end()) {
    work_done_ += active->second->work();
    active_.erase(active);
  }
  if (quiet_ && run.status != RunStatus::kFailed) return;
  const bool completed = run.status == RunStatus::kCompleted;
  const std::string stopped = run.stop_reason.empty() ? "" : "stopped early: " + printable(run.stop_reason);
  if (completed && !terminal_.interactive) {  // Its epochs have a line each.
    if (!stopped.empty())
      write_line(fmt::format("[{}/{}] {}  {}", number, runs_, printable(run.name), stopped));
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
  const std::string place = terminal_.interactive ? mark : fmt::format("[{}/{}] ", number, runs_);
  const std::string_view color = is_failure ? kRed : kYellow;
  write_line(paint(color, place) + printable(run.name) + "  " + paint(color, to_string(run.status)) +
             (run.error ? ": " + printable(*run.error) : ""));
}

void TerminalProgress::keep_runs(std::size_t count) {
  finished_ += count;
  kept_ += count;
  if (count == 0 || quiet_) return;
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

void TerminalProgress::draw_if_due() {
  if (!has_bars()) return;
  const double now = clock_();
  if (now < next_draw_) return;
  next_draw_ = now + kSecondsBetweenDraws;
  draw();
}

// Draws over the lines of the last time, so that nothing flickers: cursor to their start, new text, and "ESC
// [ K" erases the rest of each old line. A single active run has a line for its name and one for its bar;
// several have one line each. The last line is the sweep's.
void TerminalProgress::draw() {
  const int width = std::max(1, terminal_.width() - 1);  // The last column would wrap on some terminals.
  std::vector<std::string> lines;
  std::vector<const ActiveRun*> runs;
  for (const auto& [number, run] : active_) {
    if (run->started()) runs.push_back(run.get());
  }
  if (runs.size() == 1) lines.push_back(paint(kCyan, fit_width(runs[0]->name(), width, terminal_.unicode)));
  for (std::size_t i = 0; i < std::min(runs.size(), kMaxRunLines); ++i)
    lines.push_back(runs[i]->line(width, runs.size() > 1));
  lines.push_back(sweep_line(width));
  std::string text;
  if (drawn_lines_ > static_cast<int>(lines.size())) clear();  // Otherwise old lines would stay below.
  if (drawn_lines_ > 0) text = cursor_up(drawn_lines_);
  for (std::size_t i = 0; i < lines.size(); ++i) text += (i == 0 ? "" : "\n") + lines[i] + "\x1b[K";
  terminal_.write(text);
  drawn_lines_ = static_cast<int>(lines.size());
}

std::string TerminalProgress::sweep_line(int width) const {
  const double seconds = clock_() - start_;
  double done = work_done_;
  std::size_t training = 0;
  for (const auto& [number, run] : active_) {
    done += run->work_done();
    training += run->started();
  }
  const double fraction = work_ > 0 ? std::min(1.0, done / work_) : 0;
  std::vector<std::string> details;
  details.push_back(time_left(fraction, seconds));
  if (failed_ > 0) details.push_back(paint(kRed, fmt::format("{} failed", failed_)));
  if (skipped_ > 0) details.push_back(paint(kYellow, fmt::format("{} skipped", skipped_)));
  if (kept_ > 0) details.push_back(fmt::format("{} kept", kept_));
  details.push_back(paint(kDim, whole_seconds(seconds) + " so far"));
  details.push_back(paint(kDim, sweep_));
  return bar_line(fmt::format("run {}/{}", std::min(finished_ + training, runs_), runs_), fraction, details,
                  width);
}

// "epoch 2/3     ━━━━━━╸━━━━━━  43%  …". All counters have the same width, so the bars are aligned.
std::string TerminalProgress::bar_line(const std::string& counter, double fraction,
                                       const std::vector<std::string>& details, int width) const {
  const int counter_width = std::max(12, 2 * static_cast<int>(std::to_string(runs_).size()) + 7);
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
