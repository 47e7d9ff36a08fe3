// Progress of a sweep for people: a live table on a terminal, a line per epoch in a log.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "runmanager/terminal/live_region.h"
#include "runmanager/terminal/progress.h"
#include "runmanager/terminal/terminal.h"

namespace sweep {

/// On an interactive terminal live_table() is redrawn at most 10 times a second, and finished runs scroll
/// away above it; elsewhere a line is written per epoch. Calls between redraws only read the clock.
class TerminalProgress final : public Progress {
 public:
  /// If `quiet`, only messages and failed runs are written. For the others see Progress.
  TerminalProgress(Terminal terminal, std::function<double()> clock, bool quiet, const std::string& sweep,
                   std::size_t runs, double work);

  /// Writes a line that stays.
  void message(std::string_view line) override;

 private:
  void show_kept(std::size_t count) override;
  void show_begin(const LiveRun& run) override;
  void show_epoch(const LiveRun& run, const EpochRecord& epoch) override;
  void show_end(std::size_t number, const RunRecord& run) override;
  void show_change(double now) override;

  const Terminal& terminal() const { return region_.terminal(); }
  bool is_live() const { return !quiet_ && terminal().interactive; }
  void write_line(const std::string& line);
  void write_log_end(std::size_t number, const RunRecord& run);

  LiveRegion region_;  // the destructor erases it
  bool quiet_;
  double next_draw_ = 0;
  std::string last_skip_;  // the reason of the last run that was skipped
};

}  // namespace sweep
