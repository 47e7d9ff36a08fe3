// Progress of a sweep for people: bars on a terminal, a line per epoch in a log.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "runmanager/terminal/progress.h"
#include "runmanager/terminal/terminal.h"

namespace sweep {

/// On an interactive terminal there is a bar for each active run and one for
/// the sweep, redrawn at most 10 times a second, and finished runs scroll away above them; elsewhere a line
/// is written per epoch. Calls between redraws only read the clock.
class TerminalProgress final : public Progress {
 public:
  /// If `quiet`, only messages and failed runs are written. For the others see Progress.
  TerminalProgress(Terminal terminal, std::function<double()> clock, bool quiet, const std::string& sweep,
                   std::size_t runs, double work);
  ~TerminalProgress() override;  ///< Erases the bars.

  /// Writes a line that stays.
  void message(std::string_view line) override;

 private:
  void show_kept(std::size_t count) override;
  void show_begin(const RunPlan& plan) override;
  void show_epoch(const LiveRun& run, const EpochRecord& epoch) override;
  void show_end(std::size_t number, const RunRecord& run) override;
  void show_change(double now) override;

  void write_line(std::string_view line);
  void clear();
  bool has_bars() const { return !quiet_ && terminal_.interactive; }
  void draw();
  std::string run_line(const LiveRun& run, int width, bool with_name) const;
  std::string sweep_line(const LiveSweep& sweep, int width) const;
  std::string bar_line(const std::string& counter, double fraction, const std::vector<std::string>& details,
                       int width) const;
  std::string bar(double fraction, int width) const;
  std::string paint(std::string_view code, std::string_view text) const;

  Terminal terminal_;
  bool quiet_;
  double next_draw_ = 0;
  int drawn_lines_ = 0;  // the cursor is in the last of them
};

}  // namespace sweep
