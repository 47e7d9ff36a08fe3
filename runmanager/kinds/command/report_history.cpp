#include "runmanager/kinds/command/report_history.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace sweep {
namespace {

// A person's own metrics may be of any part.
bool is_of_test(const std::pair<const Metric*, double>& value) {
  return value.first->part == MetricPart::kTest && value.first->column > 0;
}

bool is_same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// Events have values in 32 bits.
bool is_same_in_events(double a, double b) { return is_same(static_cast<float>(a), static_cast<float>(b)); }

const Metric& run_seconds() {
  static const Metric& metric = metric_named("run_seconds");
  return metric;
}

const Metric& epoch_seconds() {
  static const Metric& metric = metric_named("epoch_seconds");
  return metric;
}

// Sets a value of a step, and of what is new of it.
void set(EpochRecord& step, EpochRecord& fresh, const Metric& metric, double value) {
  if (const auto known = step[metric]; known && is_same(*known, value)) return;
  step.set(metric, value);
  fresh.set(metric, value);
}

}  // namespace

bool tells_position(const Metric& metric) {
  static const Metric &epoch = metric_named("epoch"), &step = metric_named("step");
  return &metric == &epoch || &metric == &step;
}

void ReportHistory::know_times(const std::vector<EpochRecord>& recorded) {
  for (const EpochRecord& epoch : recorded) recorded_[step_of(epoch)] = epoch;
}

void ReportHistory::add(MetricReport report) {
  std::erase_if(report.values, [](const auto& value) { return tells_position(*value.first); });
  if (report.values.empty()) return;
  if (report.of_run && !steps_.empty()) {
    report.step = last_step();
    return use(report);
  }
  if (!report.step) report.step = ++unnumbered_;
  if (starts_ && (held_.empty() || report.step == held_[0].step) && repeats(report))
    return held_.push_back(std::move(report));
  settle_start(*report.step);
  use(report);
}

// Whether it is known, and later steps are too.
bool ReportHistory::repeats(const MetricReport& report) const {
  const auto at = steps_.find(*report.step);
  return at != steps_.end() && *report.step < last_step() &&
         std::ranges::all_of(report.values, [&](const auto& value) {
           const std::optional<double> known = at->second[*value.first];
           return known && is_same_in_events(*known, value.second);
         });
}

// Decides whether the attempt starts over, and from where, by the first step that it does not only repeat.
void ReportHistory::settle_start(std::int64_t step) {
  if (!std::exchange(starts_, false)) return;
  const auto held = std::exchange(held_, {});
  if (!held.empty() && step <= steps_.upper_bound(*held[0].step)->first) step = *held[0].step;
  if (!steps_.empty() && step <= last_step()) start_over(step);
  for (const MetricReport& report : held) use(report);
}

void ReportHistory::use(const MetricReport& report) {
  std::int64_t step = *report.step;
  if (!steps_.empty() && std::ranges::all_of(report.values, is_of_test)) step = std::max(step, last_step());
  if (steps_.empty() || step > last_step()) begin_step(step);
  const bool is_last = step == last_step();
  EpochRecord left_out, late;  // late: is passed on at once, also if the step was left out of the records
  EpochRecord* const earlier = is_last ? &steps_.rbegin()->second : earlier_step(step, report);
  EpochRecord& at = earlier != nullptr ? *earlier : left_out;
  for (const auto& [metric, value] : report.values) {
    if (report.in_events) {
      std::int64_t& first = in_events_.try_emplace(metric, step).first->second;
      first = std::min(first, step);
    }
    const std::optional<double> known = at[*metric];
    const bool may_change =
        is_last && sources_.emplace(metric, report.in_events).first->second == report.in_events;
    if (known && !may_change) {
      if (!is_same_in_events(*known, value) && !repeated_) repeated_ = step;
      continue;
    }
    if (auto& latest = latest_[metric]; step >= latest.first) latest = {step, value};
    set(at, is_last ? fresh_ : late, *metric, value);
  }
  if (is_last) set_times(step, at, report.seconds);
  if (late.values.empty()) return;
  late.epoch = steps_.lower_bound(step)->second.epoch;
  closed_(step, late);
}

void ReportHistory::start_over(std::int64_t step) {
  fresh_ = {};
  steps_.erase(steps_.lower_bound(step), steps_.end());
  if (steps_.empty()) paces_.clear();
  for (auto& [metric, pace] : paces_) pace.left_out = pace.stride - 1;  // What stays is kept.
  std::erase_if(latest_, [step](const auto& value) { return value.second.first >= step; });
  in_events_.clear();
  starts_over_(step);
}

// Those that say whether the step is one too many: not its times, which every step has.
std::vector<const Metric*> ReportHistory::paced_metrics(const EpochRecord& step) {
  std::vector<const Metric*> metrics, times;
  for (const auto& [metric, value] : step.values)
    (metric == &run_seconds() || metric == &epoch_seconds() ? times : metrics).push_back(metric);
  return metrics.empty() ? times : metrics;
}

bool ReportHistory::keeps(const std::vector<const Metric*>& paced) const {
  return std::ranges::any_of(paced, [this](const Metric* metric) {
    const auto pace = paces_.find(metric);
    return pace == paces_.end() || pace->second.left_out + 1 >= pace->second.stride;
  });
}

void ReportHistory::begin_step(std::int64_t step) {
  close();
  const int number = count() + 1;
  if (!steps_.empty()) {
    const std::vector<const Metric*> paced = paced_metrics(steps_.rbegin()->second);
    const bool stays = keeps(paced);
    for (const Metric* metric : paced) {
      Pace& pace = paces_[metric];
      pace.left_out = stays ? 0 : pace.left_out + 1;
    }
    if (!stays) steps_.erase(last_step());
    if (steps_.size() > max_steps_) thin_out();
  }
  sources_.clear();
  steps_.emplace(step, EpochRecord(number));
}

// Leaves out every second step of the most frequent metrics, but none that others have as well; or of all, if
// all have others.
void ReportHistory::thin_out() {
  struct Seen {
    std::size_t count = 0, position = 0;
    bool stays = true;  // the last one
  };
  std::map<const Metric*, Seen> seen;
  std::size_t highest = 0;
  for (const auto& [step, values] : steps_)
    for (const Metric* metric : paced_metrics(values)) highest = std::max(highest, ++seen[metric].count);
  const auto is_frequent = [highest](const Seen& metric) { return 2 * metric.count > highest; };
  const std::int64_t last = last_step();
  const std::size_t erased = std::erase_if(steps_, [&](const auto& kept) {
    const std::vector<const Metric*> metrics = paced_metrics(kept.second);
    bool stays = kept.first == last;
    for (const Metric* metric : metrics) {
      Seen& of = seen[metric];
      stays |= !is_frequent(of) || of.position % 2 == 0;
      ++of.position;
    }
    for (const Metric* metric : metrics) seen[metric].stays = stays;
    return !stays;
  });
  for (const auto& [metric, of] : seen) {
    if (!is_frequent(of)) continue;
    Pace& pace = paces_[metric];
    if (!of.stays) pace.left_out += pace.stride;
    pace.stride *= 2;
  }
  std::size_t position = 0;
  if (erased == 0)
    std::erase_if(steps_, [&](const auto& kept) { return position++ % 2 == 1 && kept.first != last; });
}

// A step before the last one; null if it was left out. If all steps of a metric are kept, it was not.
EpochRecord* ReportHistory::earlier_step(std::int64_t step, const MetricReport& report) {
  const auto known = steps_.lower_bound(step);
  if (known->first == step) return &known->second;
  const bool has_all = steps_.rbegin()->second.epoch == static_cast<int>(steps_.size());
  if (steps_.size() >= max_steps_) thin_out();
  if (std::ranges::all_of(report.values,
                          [this](const auto& value) { return paces_[value.first].stride > 1; }))
    return nullptr;
  const auto later = steps_.lower_bound(step);
  const auto at = steps_.emplace(step, EpochRecord(later->second.epoch)).first;
  if (has_all)
    for (auto next = std::next(at); next != steps_.end(); ++next) ++next->second.epoch;
  return &at->second;
}

// Sets the times of the last step.
void ReportHistory::set_times(std::int64_t step, EpochRecord& values, std::optional<double> seconds) {
  const auto recorded = seconds ? recorded_.end() : recorded_.find(step);
  if (recorded != recorded_.end() && recorded->second[run_seconds()]) {
    last_seconds_ = *recorded->second[run_seconds()];
    set(values, fresh_, run_seconds(), last_seconds_);
    set(values, fresh_, epoch_seconds(), recorded->second[epoch_seconds()].value_or(0));
  }
  if (seconds && !values[run_seconds()]) {
    seconds = std::max(*seconds, last_seconds_);  // Clocks of events may be set back.
    set(values, fresh_, run_seconds(), *seconds);
    if (!values[epoch_seconds()]) set(values, fresh_, epoch_seconds(), *seconds - last_seconds_);
    last_seconds_ = *seconds;
  }
}

void ReportHistory::close() {
  if (fresh_.values.empty()) return;
  EpochRecord fresh = std::exchange(fresh_, {});
  fresh.epoch = steps_.rbegin()->second.epoch;
  closed_(last_step(), fresh);
}

void ReportHistory::repeat() const {
  for (const auto& [step, values] : steps_) closed_(step, values);
}

EpochRecord ReportHistory::not_in_events(std::int64_t step, EpochRecord values) const {
  std::erase_if(values.values, [this, step](const auto& value) {
    const auto first = in_events_.find(value.first);
    return first != in_events_.end() && step >= first->second;
  });
  return values;
}

std::map<std::int64_t, EpochRecord> ReportHistory::reported() const {
  std::map<std::int64_t, EpochRecord> steps = steps_;
  for (const auto& [metric, value] : latest_) steps[value.first].set(*metric, value.second);
  for (auto& [step, values] : steps)
    for (const Metric* time : {&run_seconds(), &epoch_seconds()}) values.set(*time, std::nullopt);
  return steps;
}

std::vector<EpochRecord> ReportHistory::epochs() const {
  std::map<std::int64_t, EpochRecord> steps = steps_;
  for (const auto& [metric, value] : latest_) {
    const auto kept = steps.lower_bound(value.first);
    // An attempt that starts over has none yet after the steps that stay.
    if (kept != steps.end() && !kept->second[*metric]) kept->second.set(*metric, value.second);
  }
  std::vector<EpochRecord> epochs;
  epochs.reserve(steps.size());
  for (auto& [step, values] : steps) epochs.push_back(numbered(step, std::move(values), epochs.size() + 1));
  return epochs;
}

}  // namespace sweep
