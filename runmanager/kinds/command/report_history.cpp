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

}  // namespace

bool tells_position(const Metric& metric) {
  static const Metric &epoch = metric_named("epoch"), &step = metric_named("step");
  return &metric == &epoch || &metric == &step;
}

void ReportHistory::know_times(const std::vector<EpochRecord>& recorded) {
  for (const EpochRecord& epoch : recorded) recorded_[step_of(epoch)] = epoch;
}

void ReportHistory::add(MetricReport report, std::optional<double> seconds) {
  std::erase_if(report.values, [](const auto& value) { return tells_position(*value.first); });
  if (report.values.empty()) return;
  const std::int64_t step = report.step ? *report.step : ++unnumbered_;
  if (report.of_run && !steps_.empty()) return use(last_step(), report, seconds);
  if (starts_ && (held_.empty() || step == held_[0].first.step) && repeats(step, report)) {
    report.step = step;
    held_.emplace_back(std::move(report), seconds);
    return;
  }
  settle_start(step);
  use(step, report, seconds);
}

// Whether it is known, and later steps are too.
bool ReportHistory::repeats(std::int64_t step, const MetricReport& report) const {
  const auto at = steps_.find(step);
  return at != steps_.end() && step < last_step() &&
         std::ranges::all_of(report.values, [&](const auto& value) {
           const std::optional<double> known = at->second[*value.first];
           return known && is_same_in_events(*known, value.second);
         });
}

// Decides whether the attempt starts over, and from where, by the first step that it does not only repeat.
void ReportHistory::settle_start(std::int64_t step) {
  if (!std::exchange(starts_, false)) return;
  const auto held = std::exchange(held_, {});
  const std::int64_t first = held.empty() ? step : *held[0].first.step;
  if (!held.empty() && step <= steps_.upper_bound(first)->first) step = first;
  if (!steps_.empty() && step <= last_step()) start_over(step);
  for (const auto& [report, seconds] : held) use(first, report, seconds);
}

void ReportHistory::use(std::int64_t step, const MetricReport& report, std::optional<double> seconds) {
  if (!steps_.empty() && std::ranges::all_of(report.values, is_of_test)) step = std::max(step, last_step());
  if (report.in_events) {
    for (const auto& [metric, value] : report.values) {
      const auto [first, is_new] = in_events_.emplace(metric, step);
      first->second = std::min(first->second, step);
    }
  }
  if (steps_.empty() || step > last_step()) begin_step(step);
  const bool is_last = step == last_step();
  EpochRecord* const at = is_last ? &steps_.rbegin()->second : earlier_step(step);
  EpochRecord late;  // is passed on at once, also if the step was left out of the records
  for (const auto& [metric, value] : report.values) {
    const std::optional<double> known = at != nullptr ? (*at)[*metric] : std::nullopt;
    const bool may_change =
        is_last && sources_.emplace(metric, report.in_events).first->second == report.in_events;
    if (known && !may_change) {
      if (!is_same_in_events(*known, value) && !repeated_) repeated_ = step;
      continue;
    }
    if (auto& latest = latest_[metric]; step >= latest.first) latest = {step, value};
    set(at, is_last ? fresh_ : late, *metric, value);
  }
  if (is_last) set_times(step, *at, seconds);
  if (!late.values.empty()) {
    late.epoch = static_cast<int>(std::distance(steps_.begin(), steps_.lower_bound(step))) + 1;
    closed_(step, late);
  }
}

// `at`: the step; null if it was left out.
void ReportHistory::set(EpochRecord* at, EpochRecord& fresh, const Metric& metric, double value) {
  if (at != nullptr) {
    const std::optional<double> known = (*at)[metric];
    if (known && is_same(*known, value)) return;
    at->set(metric, value);
  }
  fresh.set(metric, value);
}

void ReportHistory::start_over(std::int64_t step) {
  fresh_ = {};
  steps_.erase(steps_.lower_bound(step), steps_.end());
  if (steps_.empty()) stride_ = 1;
  count_ = steps_.empty() ? 0 : (steps_.size() - 1) * stride_ + 1;
  std::erase_if(latest_, [step](const auto& value) { return value.second.first >= step; });
  in_events_.clear();
  starts_over_(step);
}

void ReportHistory::begin_step(std::int64_t step) {
  close();
  if (!steps_.empty() && !keeps_last()) steps_.erase(std::prev(steps_.end()));
  ++count_;
  if (steps_.size() > max_steps_) thin_out();
  sources_.clear();
  steps_[step];
}

// A step before the last one; null if it is left out.
EpochRecord* ReportHistory::earlier_step(std::int64_t step) {
  auto at = steps_.find(step);
  if (at == steps_.end() && stride_ == 1 && steps_.size() < max_steps_) {
    at = steps_.emplace(step, EpochRecord()).first;
    ++count_;
  }
  return at == steps_.end() ? nullptr : &at->second;
}

// Sets the times of the last step.
void ReportHistory::set_times(std::int64_t step, EpochRecord& values, std::optional<double> seconds) {
  static const Metric &run_seconds = metric_named("run_seconds"),
                      &epoch_seconds = metric_named("epoch_seconds");
  const auto recorded = seconds ? recorded_.end() : recorded_.find(step);
  if (recorded != recorded_.end() && recorded->second[run_seconds]) {
    last_seconds_ = *recorded->second[run_seconds];
    set(&values, fresh_, run_seconds, last_seconds_);
    set(&values, fresh_, epoch_seconds, recorded->second[epoch_seconds].value_or(0));
  }
  if (seconds && !values[run_seconds]) {
    seconds = std::max(*seconds, last_seconds_);  // Clocks of events may be set back.
    set(&values, fresh_, run_seconds, *seconds);
    if (!values[epoch_seconds]) set(&values, fresh_, epoch_seconds, *seconds - last_seconds_);
    last_seconds_ = *seconds;
  }
}

void ReportHistory::close() {
  if (fresh_.values.empty()) return;
  EpochRecord fresh = std::exchange(fresh_, {});
  fresh.epoch = static_cast<int>(count_);
  closed_(last_step(), fresh);
}

void ReportHistory::repeat() const {
  std::size_t kept = 0;
  for (const auto& [step, values] : steps_) {
    const bool is_last = step == last_step();
    EpochRecord again = values;
    if (is_last) std::erase_if(again.values, [this](const auto& value) { return fresh_[*value.first]; });
    again.epoch = static_cast<int>(is_last ? count_ : kept++ * stride_ + 1);
    if (!again.values.empty()) closed_(step, again);
  }
}

EpochRecord ReportHistory::not_in_events(std::int64_t step, EpochRecord values) const {
  std::erase_if(values.values, [this, step](const auto& value) {
    const auto first = in_events_.find(value.first);
    return first != in_events_.end() && step >= first->second;
  });
  return values;
}

void ReportHistory::thin_out() {
  stride_ *= 2;
  bool keeps = true;
  for (auto at = steps_.begin(); at != steps_.end();) {
    at = std::exchange(keeps, !keeps) ? std::next(at) : steps_.erase(at);
  }
}

std::map<std::int64_t, EpochRecord> ReportHistory::reported() const {
  std::map<std::int64_t, EpochRecord> steps = steps_;
  for (const auto& [metric, value] : latest_) steps[value.first].set(*metric, value.second);
  for (auto& [step, values] : steps)
    for (const char* key : {"run_seconds", "epoch_seconds"}) values.set(key, std::nullopt);
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
