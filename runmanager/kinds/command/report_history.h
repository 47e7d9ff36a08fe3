// The metrics that a person's program reports, step by step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "runmanager/records/results.h"

namespace sweep {

/// Values that belong to one step.
struct MetricReport {
  std::optional<std::int64_t> step;  // none: it counts the reports of the attempt
  std::vector<std::pair<const Metric*, double>> values;
  bool in_events = false;  // TensorBoard has them from the program's own events
};

/// Joins reports in any order by their steps, over all attempts of a run. An attempt goes on where the
/// previous one ended, or starts over: from its first step on, it replaces what earlier ones have reported.
/// If there are thousands of steps, some are left out of the records, but never the last one. The latest
/// value of a metric whose step was left out is in the step kept after it. Not thread-safe.
class ReportHistory {
 public:
  /// Called with each step that is complete: a later one has begun, or close() was called.
  using Closed = std::function<void(std::int64_t step, const EpochRecord& values)>;
  explicit ReportHistory(Closed closed) : closed_(std::move(closed)) {}

  /// The next reports are those of a new attempt.
  void begin_attempt() {
    starts_ = true;
    unnumbered_ = 0;
  }
  /// The times of steps that an earlier start has recorded.
  void know_times(const std::vector<EpochRecord>& recorded);
  /// `seconds`: of the run so far; none: not known. Returns whether it replaces steps of an earlier attempt.
  bool add(const MetricReport& report, std::optional<double> seconds);
  /// Completes the last step.
  void close();
  bool has_open() const { return open_; }

  /// As they are recorded: numbered from 1, each with its step if that is another number.
  std::vector<EpochRecord> epochs() const;
  /// The last one, without its number. There has to be one.
  const EpochRecord& last() const { return steps_.rbegin()->second; }
  std::size_t size() const { return steps_.size(); }
  /// Whether the last one stays when a later one begins.
  bool keeps_last() const { return (count_ - 1) % stride_ == 0; }
  /// Steps that are complete.
  std::size_t complete() const { return steps_.size() - (open_ ? 1 : 0); }
  /// Passes on every complete step again.
  void repeat() const;
  /// Those of the values that are not in the program's own events.
  EpochRecord not_in_events(EpochRecord values) const;

 private:
  void thin_out();

  const Closed closed_;
  std::map<std::int64_t, EpochRecord> steps_;
  std::map<std::int64_t, EpochRecord> recorded_;                     // by earlier starts
  std::map<const Metric*, std::pair<std::int64_t, double>> latest_;  // of each metric: its step and value
  std::set<const Metric*> in_events_;                                // of the program
  bool open_ = false;                                                // the last step is not complete
  bool starts_ = true;
  std::int64_t unnumbered_ = 0;         // reports of the attempt without a step
  std::size_t count_ = 0, stride_ = 1;  // one step in `stride_` is kept
  double last_seconds_ = 0;
};

}  // namespace sweep
