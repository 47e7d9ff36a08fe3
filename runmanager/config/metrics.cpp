#include "runmanager/config/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <mutex>

#include "core/base/suggest.h"

namespace sweep {
namespace {

using enum MetricPart;
using enum MetricUnit;
using enum MetricTargets;

constexpr bool kLarger = true, kSmaller = false;

// key, tag, title, brief, name, unit, part, better, targets, column, importance in tables, lines, means
constexpr Metric kMetrics[] = {
    {"loss", "Loss/train", "loss", "loss", "training loss", kNumber, kTraining, kSmaller, kAny, 1, 700, 1,
     30},
    {"accuracy", "Accuracy/train", "accuracy", "acc", "training accuracy", kShare, kTraining, kLarger,
     kClasses, 2, 800, 3, 60},
    {"number_correct", "Number Correct/train", "correct", "correct", "correct in training", kCount, kTraining,
     kLarger, kClasses, 3},
    {"validation_loss", "Loss/validation", "val loss", "val loss", "validation loss", kNumber, kValidation,
     kSmaller, kAny, 4, 400, 2, 20},
    {"validation_accuracy", "Accuracy/validation", "val acc", "val acc", "validation accuracy", kShare,
     kValidation, kLarger, kClasses, 5, 750, 5, 900},
    {"validation_number_correct", "Number Correct/validation", "val correct", "val correct",
     "correct in the validation", kCount, kValidation, kLarger, kClasses, 31},
    {"test_loss", "Loss/test", "test loss", "test loss", "test loss", kNumber, kTest, kSmaller, kAny, 6},
    {"test_accuracy", "Accuracy/test", "test acc", "test acc", "test accuracy", kShare, kTest, kLarger,
     kClasses, 7, 600, 4, 900},
    {"top5_accuracy", "Top-5 Accuracy/train", "top-5", "top-5", "top-5 accuracy", kShare, kTraining, kLarger,
     kManyClasses, 12, 350, 2},
    {"validation_top5_accuracy", "Top-5 Accuracy/validation", "val top-5", "val top-5",
     "validation top-5 accuracy", kShare, kValidation, kLarger, kManyClasses, 13, 540, 2},
    {"test_top5_accuracy", "Top-5 Accuracy/test", "test top-5", "test top-5", "test top-5 accuracy", kShare,
     kTest, kLarger, kManyClasses, 14, 550},
    {"mae", "MAE/train", "MAE", "MAE", "MAE", kNumber, kTraining, kSmaller, kNumbers, 15, 350, 2},
    {"validation_mae", "MAE/validation", "val MAE", "val MAE", "validation MAE", kNumber, kValidation,
     kSmaller, kNumbers, 16, 540, 2},
    {"test_mae", "MAE/test", "test MAE", "test MAE", "test MAE", kNumber, kTest, kSmaller, kNumbers, 17, 550},
    {"rmse", "RMSE/train", "RMSE", "RMSE", "RMSE", kNumber, kTraining, kSmaller, kNumbers, 18, 350, 5},
    {"validation_rmse", "RMSE/validation", "val RMSE", "val RMSE", "validation RMSE", kNumber, kValidation,
     kSmaller, kNumbers, 19, 540, 5, 900},
    {"test_rmse", "RMSE/test", "test RMSE", "test RMSE", "test RMSE", kNumber, kTest, kSmaller, kNumbers, 20,
     550, 0, 900},
    {"r2", "R2/train", "R2", "R2", "R²", kNumber, kTraining, kLarger, kNumbers, 21, 350, 2},
    {"validation_r2", "R2/validation", "val R2", "val R2", "validation R²", kNumber, kValidation, kLarger,
     kNumbers, 22, 540, 2},
    {"test_r2", "R2/test", "test R2", "test R2", "test R²", kNumber, kTest, kLarger, kNumbers, 23, 550},
    {"epoch_seconds", "Duration/epoch_seconds", "s/epoch", "s/epoch", "time per epoch", kSeconds, kTime,
     kSmaller, kAny, 8, 500, 0, 40},
    {"images_per_second", "Time/images_per_second", "img/s", "img/s", "samples per second", kRate, kTime,
     kLarger, kAny, 10, 300},
    {"data_wait_seconds", "Time/data_wait_seconds", "data wait", "data wait", "data wait per epoch", kSeconds,
     kTime, kSmaller, kAny, 32},
    {"device_seconds", "Time/device_seconds", "device", "device", "device time per epoch", kSeconds, kTime,
     kSmaller, kAny, 33},
    {"communication_seconds", "Time/communication_seconds", "exchange", "exchange", "communication per epoch",
     kSeconds, kTime, kSmaller, kAny, 11},
    {"step", "", "step", "step", "step of the program", kCount, kTime, kSmaller, kAny, 24},
    {"setup_seconds", "", "setup", "setup", "set-up time", kSeconds, kTime, kSmaller, kAny, 0, 90},
    {"run_seconds", "", "total", "total", "time of the run", kSeconds, kTime, kSmaller, kAny, 9, 100}};

}  // namespace

std::span<const Metric> metrics() { return kMetrics; }

const Metric* find_metric(std::string_view key) {
  const auto* const found = std::ranges::find(kMetrics, key, &Metric::key);
  return found == std::end(kMetrics) ? nullptr : found;
}

const Metric& metric_named(std::string_view key) {
  if (const Metric* const known = find_metric(key)) return *known;
  static std::mutex mutex;
  static std::map<std::string, Metric, std::less<>> own;
  const std::lock_guard lock(mutex);
  auto found = own.find(key);
  if (found == own.end()) {
    found = own.emplace(key, Metric{}).first;
    Metric& metric = found->second;
    metric.key = metric.tag = metric.title = metric.brief = metric.name = found->first;
    metric.importance = 510;
    metric.mean_importance = 550;
    metric.line_importance = 2;
    // As far as a name tells.
    constexpr std::array kLargerEndings = {"accuracy", "acc", "auc", "f1", "r2"};
    metric.larger_is_better =
        std::ranges::any_of(kLargerEndings, [key](const char* ending) { return key.ends_with(ending); });
    if (key.ends_with("accuracy")) metric.unit = kShare;
    if (key == kParameters) metric.unit = kRate;  // "101k"
  }
  return found->second;
}

const Metric* metric_tagged(std::string_view tag) {
  const auto* const found = std::ranges::find(kMetrics, tag, &Metric::tag);
  return found == std::end(kMetrics) || tag.empty() ? nullptr : found;
}

const Metric& metric_called(std::string_view name) {
  const Metric* const tagged = metric_tagged(name);
  return tagged != nullptr ? *tagged : metric_named(name);
}

std::span<const Metric* const> epoch_metrics() {
  static const std::vector<const Metric*> list = [] {
    std::vector<const Metric*> with_column;
    for (const Metric& metric : kMetrics) {
      if (metric.column > 0) with_column.push_back(&metric);
    }
    std::ranges::sort(with_column, {}, &Metric::column);
    return with_column;
  }();
  return list;
}

bool is_quality(const Metric& metric) { return metric.part != kTime && metric.unit != kCount; }

std::vector<const Metric*> watchable_metrics() {
  std::vector<const Metric*> list;
  for (const MetricPart part : {kTraining, kValidation}) {
    for (const Metric& metric : kMetrics) {
      if (metric.part == part) list.push_back(&metric);
    }
  }
  return list;
}

std::vector<std::string> watchable_tags() {
  std::vector<std::string> tags;
  for (const Metric* metric : watchable_metrics()) tags.emplace_back(metric->tag);
  return tags;
}

std::vector<std::string> goal_tags() {
  std::vector<std::string> tags = watchable_tags();
  for (const Metric& metric : kMetrics) {
    if (metric.part == kTime && !metric.tag.empty()) tags.emplace_back(metric.tag);
  }
  tags.emplace_back(kParameters);
  return tags;
}

std::string metric_text(const Metric& metric, const std::optional<double>& value, const char* none) {
  if (!value) return none;
  switch (metric.unit) {
    case kSeconds:
      return human_seconds(*value);
    case kRate:
      return human_count(*value);
    case kShare:
      return std::isfinite(*value) ? fmt::format("{:.2f}%", 100 * *value) : fmt::format("{}", shown(*value));
    case kCount:
      return fmt::format("{:.0f}", shown(*value));
    case kNumber:
      break;
  }
  return short_number(*value);
}

std::string short_number(double value) {
  constexpr double kSmall = 1e-3, kFewest = 10, kLong = 1e7;
  const double size = std::abs(value);
  const bool is_plain = size == 0 || (size >= kSmall && size < kLong);
  const bool is_count = is_plain && size >= kFewest && size == std::floor(size);
  return fmt::format(fmt::runtime(is_count ? "{:.0f}" : is_plain ? "{:.4f}" : "{:.4g}"), shown(value));
}

std::string nearest_key(std::string_view asked, const std::vector<std::string>& keys) {
  std::vector<std::string> titles;
  for (const std::string& key : keys) {
    titles.emplace_back(metric_named(key).brief);
    std::ranges::replace(titles.back(), ' ', '_');
  }
  const auto title = std::ranges::find(titles, asked);
  if (title != titles.end()) return keys[static_cast<std::size_t>(title - titles.begin())];
  if (std::string nearest = nearest_name(asked, keys); !nearest.empty()) return nearest;
  const std::string near = nearest_name(asked, titles);
  const auto found = std::ranges::find(titles, near);
  return near.empty() ? "" : keys[static_cast<std::size_t>(found - titles.begin())];
}

std::string near_tag(std::string_view asked) {
  std::vector<std::string> keys;
  for (const Metric* metric : watchable_metrics()) keys.emplace_back(metric->key);
  const Metric* metric = find_metric(nearest_key(asked, keys));
  return metric == nullptr ? "" : std::string(metric->tag);
}

std::string human_seconds(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  if (seconds < 0.5e-6) return "0 ms";
  if (seconds < 0.0095e-3) return fmt::format("{:.3f} ms", seconds * 1e3);
  if (seconds < 0.095e-3) return fmt::format("{:.2f} ms", seconds * 1e3);
  if (seconds < 0.0095) return fmt::format("{:.1f} ms", seconds * 1e3);
  if (seconds < 0.9995) return fmt::format("{:.0f} ms", seconds * 1e3);
  if (seconds < 9.995) return fmt::format("{:.2f} s", seconds);
  if (seconds < 59.95) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{} m {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} m", whole / 3600, whole % 3600 / 60);
}

std::string human_count(double count) {
  if (!std::isfinite(count) || count < 0) return "?";
  for (const char* unit : {"", "k", "M", "G"}) {
    if (*unit != '\0') count /= 1000;
    if (count < 9.995) return fmt::format("{:.2f}{}", count, unit);
    if (count < 99.95) return fmt::format("{:.1f}{}", count, unit);
    if (count < 999.5) return fmt::format("{:.0f}{}", count, unit);
  }
  return fmt::format("{:.0f}G", count);
}

Goal asked_goal(const std::string& name, bool largest_is_best) {
  return {&metric_called(name), largest_is_best, name};
}

Goal goal_for(const Metric& metric, const Goals& goals) {
  const auto found = std::ranges::find(goals, &metric, &Goal::metric);
  return found != goals.end() ? *found : Goal{&metric, metric.larger_is_better};
}

std::string goal_names(const Goals& goals) {
  std::string names(goals[0].metric->name);
  for (std::size_t i = 1; i < goals.size(); ++i)
    names += fmt::format("{}{}", i + 1 == goals.size() ? " and " : ", ", goals[i].metric->name);
  return names;
}

std::string goal_text(const Goals& goals) {
  return fmt::format("{} {}{}", goals[0].largest_is_best ? "highest" : "lowest", goals[0].metric->name,
                     goals.size() > 1 ? fmt::format(", the first of {} goals", goals.size()) : "");
}

}  // namespace sweep
