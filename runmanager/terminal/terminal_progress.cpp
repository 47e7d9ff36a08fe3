#include "runmanager/terminal/terminal_progress.h"

#include <fmt/format.h>

#include <utility>

#include "core/base/printable.h"
#include "core/base/text.h"
#include "runmanager/terminal/live_table.h"
#include "runmanager/terminal/table.h"

namespace sweep {
namespace {

constexpr double kSecondsBetweenDraws = 0.1;

}  // namespace

TerminalProgress::TerminalProgress(Terminal terminal, std::function<double()> clock, bool quiet,
                                   const std::string& sweep, std::size_t runs, double work)
    : Progress(std::move(clock), sweep, runs, work), region_(std::move(terminal)), quiet_(quiet) {}

void TerminalProgress::show_kept(std::size_t count) {
  if (quiet_) return;
  write_line(painted(terminal(), kDim, counted(count, "finished run") + " kept"));
}

void TerminalProgress::show_begin(const LiveRun&) {}

void TerminalProgress::show_epoch(const LiveRun& run, const EpochRecord& epoch) {
  if (quiet_ || terminal().interactive) return;
  write_line(epoch_line(state(), run, epoch));
}

void TerminalProgress::show_end(std::size_t number, const RunRecord& run) {
  if (quiet_ && run.status != RunStatus::kFailed) return;
  if (!terminal().interactive) return write_log_end(number, run);
  // Many runs are skipped for one reason: the first tells it, the live table counts, the results have all.
  if (run.status == RunStatus::kSkipped && std::exchange(last_skip_, run.error.value_or("")) == run.error)
    return;
  write_line(ended_line(state(), run, terminal()));
}

// In a log each epoch of a run has a line, so a completed run has been shown.
void TerminalProgress::write_log_end(std::size_t number, const RunRecord& run) {
  const std::string place = fmt::format("[{}/{}] {}  ", number, state().runs, printable(run.name));
  if (run.status != RunStatus::kCompleted) {
    write_line(place + std::string(to_string(run.status)) + (run.error ? ": " + printable(*run.error) : ""));
  } else if (!run.stop_reason.empty()) {
    write_line(place + "stopped early: " + printable(run.stop_reason));
  }
}

void TerminalProgress::message(std::string_view line) { write_line(printable(line)); }

void TerminalProgress::show_change(double now) {
  if (!is_live() || now < next_draw_) return;
  next_draw_ = now + kSecondsBetweenDraws;
  region_.draw(live_table(state(), terminal()));
}

void TerminalProgress::write_line(const std::string& line) {
  if (terminal().interactive) {
    region_.write_above(line + "\n");
  } else {
    terminal().write(line + "\n");
  }
  next_draw_ = 0;
}

}  // namespace sweep
