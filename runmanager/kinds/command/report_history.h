// The metrics that a person's program reports, step by step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "runmanager/records/results.h"

namespace sweep {

/// Values that belong to one step.
struct MetricReport {
  std::optional<std::int64_t> step;  // none: it counts the reports of the attempt
  std::vector<std::pair<const Metric*, double>> values;
  bool of_run = false;                 // They belong to the last step, if there is one.
  bool in_events = false;              // TensorBoard has them from the program's own events
  double wall_time = 0;                // of the event, in seconds since 1970; 0: not known
  std::optional<double> seconds = {};  // of the run by then; none: not known
  int attempt = 0;                     // that begins, and nothing else; 0: none
};

/// Whether it says where a report belongs: that is no metric; programs repeat it as one.
bool tells_position(const Metric& metric);

/// Joins reports by their steps, over all attempts of a run. An attempt goes on where the previous one ended,
/// or starts over: from its first step on, it replaces what earlier ones have reported. If it repeats an old
/// step and leaps from there, as programs that report something at each start do, the step after the leap is
/// its first. Within an attempt, only the last step may change, by the source that reported the metric first;
/// earlier ones can still get metrics that they do not have. Metrics of a test without a later step belong to
/// the last one. If there are more steps than are kept, some of those are left out of the records that have
/// the most frequent metrics and no other, but never the last one. The latest value of a metric whose step
/// was left out is in the step kept after it. Not thread-safe.
class ReportHistory {
 public:
  /// Called with the values of a step once a later one has begun or close() was called, and again with those
  /// that come later. `values` has the number of the step among all as its epoch.
  using Closed = std::function<void(std::int64_t step, const EpochRecord& values)>;
  /// Called when it is known that an attempt replaces earlier ones from `step` on, whose steps are gone, and
  /// before anything of the attempt is passed on.
  using StartsOver = std::function<void(std::int64_t step)>;
  /// `max_steps`: how many are kept at most, >= 2. More make records that take long to write.
  explicit ReportHistory(
      Closed closed, std::size_t max_steps = 1000, StartsOver starts_over = [](std::int64_t) {})
      : closed_(std::move(closed)), starts_over_(std::move(starts_over)), max_steps_(max_steps) {}

  /// The next reports are those of a new attempt.
  void begin_attempt() {
    end_attempt();
    starts_ = true;
    unnumbered_ = 0;
  }
  /// The next reports are those of any attempt so far, or of a new one.
  void end_attempt() { settle_start(std::numeric_limits<std::int64_t>::max()); }
  /// The times of steps that an earlier start has recorded.
  void know_times(const std::vector<EpochRecord>& recorded);
  void add(MetricReport report);
  /// Passes on what is new of the last step.
  void close();

  /// As they are recorded: numbered from 1, each with its step if that is another number.
  std::vector<EpochRecord> epochs() const;
  /// The last one of these. There has to be one.
  EpochRecord last() const { return numbered(last_step(), steps_.rbegin()->second, steps_.size()); }
  std::int64_t last_step() const { return steps_.rbegin()->first; }
  std::size_t size() const { return steps_.size(); }
  /// Steps so far, with those that were left out.
  int count() const { return steps_.empty() ? 0 : steps_.rbegin()->second.epoch; }
  /// Whether the last one stays when a later one begins.
  bool keeps_last() const { return keeps(paced_metrics(steps_.rbegin()->second)); }
  /// Steps after which a later one has begun.
  std::size_t complete() const { return steps_.size() - (steps_.empty() ? 0 : 1); }
  /// Passes on all steps again.
  void repeat() const;
  /// Those of a step's values that are not in the program's own events.
  EpochRecord not_in_events(std::int64_t step, EpochRecord values) const;
  /// What was reported of all steps that are kept, and the latest value of every metric, each by its step.
  std::map<std::int64_t, EpochRecord> reported() const;
  /// The first step since the last call, before the last one, whose metrics were reported again.
  std::optional<std::int64_t> take_repeated() { return std::exchange(repeated_, std::nullopt); }

 private:
  // One in `stride` steps with a metric is kept; `left_out` steps came after the last one that was.
  struct Pace {
    int stride = 1, left_out = 0;
  };

  static std::vector<const Metric*> paced_metrics(const EpochRecord& step);
  bool keeps(const std::vector<const Metric*>& paced) const;
  bool repeats(const MetricReport& report) const;
  void settle_start(std::int64_t step);
  void use(const MetricReport& report);
  void start_over(std::int64_t step);
  void begin_step(std::int64_t step);
  void thin_out();
  EpochRecord* earlier_step(std::int64_t step, const MetricReport& report);
  void set_times(std::int64_t step, EpochRecord& values, std::optional<double> seconds);

  const Closed closed_;
  const StartsOver starts_over_;
  const std::size_t max_steps_;
  std::map<std::int64_t, EpochRecord> steps_;                        // with their numbers among all
  std::map<std::int64_t, EpochRecord> recorded_;                     // by earlier starts
  std::map<const Metric*, std::pair<std::int64_t, double>> latest_;  // of each metric: its step and value
  std::map<const Metric*, std::int64_t> in_events_;  // of the program: the first step that is in them
  std::optional<std::int64_t> repeated_;
  std::map<const Metric*, bool> sources_;  // of the last step: whether its events reported the metric first
  EpochRecord fresh_;                      // what the last step has and was not passed on
  bool starts_ = true;
  std::vector<MetricReport> held_;  // of the attempt's first step, until a later one tells if it starts over
  std::int64_t unnumbered_ = 0;     // reports of the attempt without a step
  std::map<const Metric*, Pace> paces_;
  double last_seconds_ = 0;
};

}  // namespace sweep
