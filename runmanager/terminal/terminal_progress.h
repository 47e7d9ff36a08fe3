// Progress of a sweep for people: bars on a terminal, a line per epoch in a log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
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
  /// `clock` returns seconds and never goes back. `sweep` is the sweep's name, and `runs` the number of its
  /// runs, finished ones included. `work` is the sum of training samples times epochs over the runs to be
  /// trained, from which the time left is estimated. If `quiet`, only messages and failed runs are written.
  TerminalProgress(Terminal terminal, std::function<double()> clock, bool quiet, const std::string& sweep,
                   std::size_t runs, double work);
  ~TerminalProgress() override;  ///< Erases the bars.
  TerminalProgress(const TerminalProgress&) = delete;
  TerminalProgress& operator=(const TerminalProgress&) = delete;

  TrainingObserver& run(std::size_t number) override;
  void end_run(std::size_t number, const RunRecord& run) override;
  void keep_runs(std::size_t count) override;
  /// Writes a line that stays.
  void message(std::string_view line) override;

 private:
  class ActiveRun;
  void write_line(std::string_view line);
  void clear();
  bool has_bars() const { return !quiet_ && terminal_.interactive; }
  void draw_if_due();
  void draw();
  std::string sweep_line(int width) const;
  std::string bar_line(const std::string& counter, double fraction, const std::vector<std::string>& details,
                       int width) const;
  std::string bar(double fraction, int width) const;
  std::string paint(std::string_view code, std::string_view text) const;
  Terminal terminal_;
  std::function<double()> clock_;
  bool quiet_;
  std::string sweep_;
  std::size_t runs_;
  double work_;

  double start_ = 0;  // by clock_
  double next_draw_ = 0;
  int drawn_lines_ = 0;  // the cursor is in the last of them
  std::size_t finished_ = 0, failed_ = 0, skipped_ = 0, kept_ = 0;
  double work_done_ = 0;  // of runs that have ended

  std::map<std::size_t, std::unique_ptr<ActiveRun>> active_;  // by the run's number
};

}  // namespace sweep
