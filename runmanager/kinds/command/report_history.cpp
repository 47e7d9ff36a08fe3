#include "runmanager/kinds/command/report_history.h"

#include <algorithm>
#include <iterator>

namespace sweep {
namespace {

// More would make records that take long to write after each of many steps.
constexpr std::size_t kMaxSteps = 1000;

}  // namespace

void ReportHistory::know_times(const std::vector<EpochRecord>& recorded) {
  for (const EpochRecord& epoch : recorded)
    recorded_[static_cast<std::int64_t>(epoch["step"].value_or(epoch.epoch))] = epoch;
}

bool ReportHistory::add(const MetricReport& report, std::optional<double> seconds) {
  // Where a report belongs is no metric; programs repeat it as one.
  const auto is_position = [](const auto& value) {
    return value.first->key == "epoch" || value.first->key == "step";
  };
  if (std::ranges::all_of(report.values, is_position)) return false;
  const std::int64_t last = steps_.empty() ? 0 : steps_.rbegin()->first;
  const std::int64_t step = report.step ? *report.step : ++unnumbered_;
  const bool replaces = std::exchange(starts_, false) && !steps_.empty() && step <= last;
  if (replaces) {
    open_ = false;
    steps_.erase(steps_.lower_bound(step), steps_.end());
    std::erase_if(latest_, [step](const auto& value) { return value.second.first >= step; });
  }
  if (steps_.empty() || step > steps_.rbegin()->first) {
    close();
    if (!steps_.empty() && !keeps_last()) steps_.erase(std::prev(steps_.end()));
    ++count_;
    if (steps_.size() > kMaxSteps) thin_out();
    open_ = true;
  }
  EpochRecord& at = steps_[step];
  for (const auto& [metric, value] : report.values) {
    if (is_position(std::pair(metric, value))) continue;
    at.set(*metric, value);
    if (auto& latest = latest_[metric]; step >= latest.first) latest = {step, value};
    if (report.in_events) in_events_.insert(metric);
  }
  static const Metric &run_seconds = metric_named("run_seconds"),
                      &epoch_seconds = metric_named("epoch_seconds");
  const auto recorded = seconds ? recorded_.end() : recorded_.find(step);
  if (recorded != recorded_.end() && recorded->second[run_seconds]) {
    last_seconds_ = *recorded->second[run_seconds];
    at.set(run_seconds, last_seconds_);
    at.set(epoch_seconds, recorded->second[epoch_seconds].value_or(0));
  }
  if (seconds && !at[run_seconds]) {
    at.set(run_seconds, *seconds);
    at.set(epoch_seconds, *seconds - last_seconds_);
    last_seconds_ = *seconds;
  }
  return replaces;
}

void ReportHistory::close() {
  if (!std::exchange(open_, false)) return;
  closed_(steps_.rbegin()->first, last());
}

void ReportHistory::repeat() const {
  for (const auto& [step, values] : steps_) {
    if (!open_ || step != steps_.rbegin()->first) closed_(step, values);
  }
}

EpochRecord ReportHistory::not_in_events(EpochRecord values) const {
  std::erase_if(values.values, [this](const auto& value) { return in_events_.contains(value.first); });
  return values;
}

void ReportHistory::thin_out() {
  stride_ *= 2;
  bool keeps = true;
  for (auto at = steps_.begin(); at != steps_.end();) {
    at = std::exchange(keeps, !keeps) ? std::next(at) : steps_.erase(at);
  }
}

std::vector<EpochRecord> ReportHistory::epochs() const {
  std::map<std::int64_t, EpochRecord> steps = steps_;
  for (const auto& [metric, value] : latest_) {
    EpochRecord& kept = steps.lower_bound(value.first)->second;
    if (!kept[*metric]) kept.set(*metric, value.second);
  }
  std::vector<EpochRecord> epochs;
  epochs.reserve(steps.size());
  for (auto& [step, epoch] : steps) {
    epoch.epoch = static_cast<int>(epochs.size()) + 1;
    if (step != epoch.epoch) epoch.set("step", static_cast<double>(step));
    epochs.push_back(std::move(epoch));
  }
  return epochs;
}

}  // namespace sweep
