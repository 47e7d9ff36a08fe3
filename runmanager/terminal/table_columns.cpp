#include "runmanager/terminal/table_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "runmanager/config/problems.h"
#include "runmanager/terminal/table.h"
#include "runmanager/terminal/terminal.h"

namespace sweep {
namespace {

std::string number(std::optional<double> value, const char* format) {
  return value ? fmt::format(fmt::runtime(format), *value) : "";
}

std::string percent(std::optional<double> fraction) {
  if (!fraction) return "";
  return std::isfinite(*fraction) ? fmt::format("{:.2f}%", 100 * *fraction) : fmt::format("{}", *fraction);
}

// The text of a cell from the last epoch's record; "" for a run without epochs.
auto from_last_epoch(std::function<std::string(const EpochRecord&)> text) {
  return [text = std::move(text)](const RunRecord& run) {
    const EpochRecord* last = last_epoch(run);
    return last != nullptr ? text(*last) : std::string();
  };
}

bool is_number(const ParamValue& value) {
  return std::holds_alternative<std::int64_t>(value) || std::holds_alternative<double>(value);
}

ResultColumn param_column(const std::string& key, const std::vector<RunRecord>& runs) {
  const bool numeric = std::all_of(runs.begin(), runs.end(), [&key](const RunRecord& run) {
    const ParamValue* value = find_param(run.params, key);
    return value == nullptr || is_number(*value);
  });
  const auto text = [key](const RunRecord& run) { return fit_width(param_text(run.params, key), 32); };
  const bool varies = std::any_of(runs.begin(), runs.end(),
                                  [&](const RunRecord& run) { return text(run) != text(runs.front()); });
  return {key, key, text, numeric, varies ? kVaryingParameter : kConstantParameter, true};
}

// Over all epochs, as the mean time of an epoch is.
double mean_images_per_second(const RunRecord& run) {
  double images = 0, seconds = 0;
  for (const EpochRecord& epoch : run.epochs) {
    images += epoch.images_per_second * epoch.epoch_seconds;
    seconds += epoch.epoch_seconds;
  }
  return images / seconds;
}

// Marks a time of a run that shared the machine with others: it was longer than it would be alone.
std::string mark_if_shared(const RunRecord& run, const std::string& time) {
  return run.jobs > 1 ? "~" + time : time;
}

// "12", or "5 of 12" for a run that was stopped early.
std::string epochs_text(const RunRecord& run) {
  if (run.epochs.empty()) return "";
  std::string epochs = std::to_string(run.epochs.size());
  if (run.stop_reason.empty() || !run.config.is_object() || !run.config.contains("epochs")) return epochs;
  return fmt::format("{} of {}", epochs, run.config["epochs"].dump());
}

}  // namespace

std::vector<ResultColumn> table_columns(const std::vector<RunRecord>& runs,
                                        const std::vector<std::string>& keys) {
  std::vector<ResultColumn> columns;
  columns.reserve(keys.size());
  for (const std::string& key : keys) columns.push_back(param_column(key, runs));
  if (keys.empty())
    columns.push_back(
        {"run", "run", [](const RunRecord& run) { return run.name; }, false, kAlwaysShown, true});
  columns.push_back({"status", "status",
                     [](const RunRecord& run) { return std::string(to_string(run.status)); }, false,
                     kAlwaysShown, true});
  columns.push_back({"epochs", "epochs", [](const RunRecord& run) { return epochs_text(run); }, true, 200});
  columns.push_back({"loss", "loss",
                     from_last_epoch([](const EpochRecord& e) { return number(e.loss, "{:.4f}"); }), true,
                     700});
  columns.push_back({"accuracy", "accuracy",
                     from_last_epoch([](const EpochRecord& e) { return percent(e.accuracy); }), true, 800});
  columns.push_back(
      {"validation_loss", "val loss",
       from_last_epoch([](const EpochRecord& e) { return number(e.validation_loss, "{:.4f}"); }), true, 400});
  columns.push_back({"validation_accuracy", "val acc",
                     from_last_epoch([](const EpochRecord& e) { return percent(e.validation_accuracy); }),
                     true, 750});
  columns.push_back({"test_accuracy", "test acc",
                     [](const RunRecord& run) { return percent(metric_of(run, "test_accuracy")); }, true,
                     600});
  for (std::size_t i = 0; i < kMeasures.size(); ++i) {
    const std::string title(kMeasures[i].title), key(kMeasures[i].key), test_key = "test_" + key;
    const auto text = [i](const std::optional<double>& value) { return measure_text(kMeasures[i], value); };
    columns.push_back(
        {key, title, from_last_epoch([=](const EpochRecord& e) { return text(e.measures[i]); }), true, 350});
    columns.push_back({"validation_" + key, "val " + title,
                       from_last_epoch([=](const EpochRecord& e) { return text(e.validation_measures[i]); }),
                       true, 450});
    columns.push_back({test_key, "test " + title,
                       [=](const RunRecord& run) { return text(metric_of(run, test_key)); }, true, 550});
  }
  columns.push_back({"epoch_seconds", "s/epoch",
                     [](const RunRecord& run) {
                       return run.epochs.empty()
                                  ? ""
                                  : mark_if_shared(run, human_seconds(mean_epoch_seconds(run)));
                     },
                     true, 500});
  columns.push_back({"images_per_second", "img/s",
                     [](const RunRecord& run) {
                       return run.epochs.empty()
                                  ? ""
                                  : mark_if_shared(run, human_count(mean_images_per_second(run)));
                     },
                     true, 300});
  columns.push_back(
      {"setup_seconds", "setup",
       [](const RunRecord& run) { return run.setup_seconds ? human_seconds(*run.setup_seconds) : ""; }, true,
       90});
  columns.push_back(
      {"run_seconds", "total",
       [](const RunRecord& run) { return run.run_seconds ? human_seconds(*run.run_seconds) : ""; }, true,
       100});
  return columns;
}

std::vector<ResultColumn> chosen_columns(const std::vector<ResultColumn>& columns,
                                         const std::vector<std::string>& names) {
  std::vector<ResultColumn> chosen;
  for (const std::string& name : names) {
    const auto found = std::ranges::find(columns, name, &ResultColumn::name);
    if (found == columns.end()) {
      std::vector<std::string> known;
      known.reserve(columns.size());
      for (const ResultColumn& column : columns) known.push_back(column.name);
      throw ConfigError(
          fmt::format("there is no column \"{}\", want {}{}", name, listed(known), suggestion(name, known)));
    }
    chosen.push_back(*found);
    chosen.back().importance = kAlwaysShown;  // Nothing that is asked for is left out.
  }
  return chosen;
}

}  // namespace sweep
