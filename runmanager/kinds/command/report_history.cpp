#include "runmanager/kinds/command/report_history.h"

#include <iterator>

namespace sweep {
namespace {

// More would make records that take long to write after each of many steps.
constexpr std::size_t kMaxSteps = 1000;

}  // namespace

bool ReportHistory::add(const MetricReport& report, std::optional<double> seconds) {
  if (report.values.empty()) return false;
  const std::int64_t last = steps_.empty() ? 0 : steps_.rbegin()->first;
  const std::int64_t step = report.step ? *report.step : ++unnumbered_;
  const bool replaces = std::exchange(starts_, false) && !steps_.empty() && step <= last;
  if (replaces) {
    open_ = false;
    steps_.erase(steps_.lower_bound(step), steps_.end());
  }
  if (steps_.empty() || step > steps_.rbegin()->first) {
    close();
    if (!steps_.empty() && !keeps_last()) steps_.erase(std::prev(steps_.end()));
    ++count_;
    if (steps_.size() > kMaxSteps) thin_out();
    open_ = true;
  }
  Step& at = steps_[step];
  for (const auto& [name, value] : report.values) {
    const Metric& metric = metric_called(name);
    at.all.set(metric.key, value);
    if (!report.in_events) at.not_in_events.set(metric.key, value);
  }
  if (seconds && !at.all["run_seconds"]) {
    at.all.set("run_seconds", *seconds);
    at.all.set("epoch_seconds", *seconds - last_seconds_);
    last_seconds_ = *seconds;
  }
  return replaces;
}

void ReportHistory::close() {
  if (!std::exchange(open_, false)) return;
  const auto last = std::prev(steps_.end());
  closed_(last->first, last->second.not_in_events);
}

void ReportHistory::thin_out() {
  stride_ *= 2;
  bool keeps = true;
  for (auto at = steps_.begin(); at != steps_.end();) {
    at = std::exchange(keeps, !keeps) ? std::next(at) : steps_.erase(at);
  }
}

std::vector<EpochRecord> ReportHistory::epochs() const {
  std::vector<EpochRecord> epochs;
  epochs.reserve(steps_.size());
  for (const auto& [step, values] : steps_) {
    EpochRecord epoch = values.all;
    epoch.epoch = static_cast<int>(epochs.size()) + 1;
    if (step != epoch.epoch) epoch.set("step", static_cast<double>(step));
    epochs.push_back(std::move(epoch));
  }
  return epochs;
}

void ReportHistory::for_each(const Closed& use) const {
  for (const auto& [step, values] : steps_) {
    if (!open_ || step != steps_.rbegin()->first) use(step, values.not_in_events);
  }
}

}  // namespace sweep
