// Progress of a sweep on the terminal: a bar for each run and one for the sweep, or a line per epoch in a
// log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/engine/engine.h"
#include "runmanager/records/results.h"
#include "runmanager/records/training_observer.h"
#include "runmanager/terminal/terminal.h"

namespace sweep {

/// Shows where a sweep stands. On an interactive terminal a few lines are redrawn at most 15 times a second,
/// and finished runs scroll away above them; elsewhere a line is written per epoch. Drawing never throws, and
/// a call between two redraws costs a look at the clock. Not thread-safe.
class Progress {
 public:
  /// `work` is the number of training samples times epochs of all the runs that are to be trained, for the
  /// time left. A quiet one writes nothing but messages.
  Progress(Terminal terminal, std::function<double()> clock, bool quiet, std::string sweep, std::size_t runs,
           double work);
  ~Progress();  ///< Takes the bars away.
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// To be told of the training of run `number`, from 1. Valid until end_run() of that number.
  TrainingObserver& run(std::size_t number);
  /// Also for a run that was never begun: skipped, or failed before it.
  void end_run(std::size_t number, const RunRecord& run);
  /// `count` runs were finished before; they are not trained again.
  void keep_runs(std::size_t count);

  /// A line that stays, also where progress is not wanted.
  void message(std::string_view line);

 private:
  class ActiveRun;
  void write_line(std::string_view line);
  void clear();
  void draw_if_due();
  void draw();
  std::string sweep_line(int width) const;
  std::string bar_line(const std::string& counter, double part, const std::vector<std::string>& infos,
                       int width) const;
  std::string bar(double part, int width) const;
  std::string paint(std::string_view code, std::string_view text) const;
  Terminal terminal_;
  std::function<double()> clock_;
  bool quiet_;
  std::string sweep_;
  std::size_t runs_;
  double work_;

  double begin_ = 0;
  double next_draw_ = 0;
  int drawn_lines_ = 0;
  std::size_t finished_ = 0, failed_ = 0, skipped_ = 0, kept_ = 0;
  double work_done_ = 0;

  std::map<std::size_t, std::unique_ptr<ActiveRun>> active_;  // by number
};

}  // namespace sweep
