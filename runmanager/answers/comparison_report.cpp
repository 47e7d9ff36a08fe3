#include "runmanager/answers/comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/base/text.h"
#include "runmanager/records/results.h"
#include "runmanager/records/run_metric.h"
#include "runmanager/terminal/table.h"
#include "runmanager/text/csv.h"
#include "runmanager/text/json_output.h"
#include "runmanager/text/markdown.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;
using OptionalNumber = std::optional<double>;

std::string seconds_text(const OptionalNumber& seconds) { return seconds ? human_seconds(*seconds) : "-"; }

std::string ratio_text(double ratio) {
  return fmt::format(fmt::runtime(ratio < 0.1 ? "{:.2g}" : ratio < 10 ? "{:.2f}" : "{:.1f}"), ratio);
}

std::string both(const OptionalNumber& base, const OptionalNumber& other) {
  return seconds_text(base) + " / " + seconds_text(other);
}

std::string curves_text(const CurveParity& curves) {
  if (curves.epochs == 0) return "-";
  if (curves.same_bits) return "same bits";
  if (!curves.largest_loss_difference) return "-";
  return fmt::format("{:.2g} in {} {}", shown(*curves.largest_loss_difference),
                     curves.is_step ? "step" : "epoch", curves.epoch);
}

std::string difference_text(double difference, const std::string& metric) {
  if (metric_named(metric).unit == MetricUnit::kShare)
    return fmt::format("{:+.2f} points", 100 * shown(difference));
  return fmt::format("{:+.4g}", shown(difference));
}

// Devices and directories speak for themselves, numbers do not.
std::string label(const Comparison& comparison, const std::string& value) {
  const bool speaks = comparison.key == "device" || comparison.key == kSweepKey;
  return speaks ? value : comparison.key + "=" + value;
}

// Whether a ratio tells more than a difference.
bool is_speed(const std::string& metric) { return is_time(metric) || metric == "images_per_second"; }

std::string change_text(const ComparedPair& pair, const std::string& metric) {
  if (is_speed(metric)) return pair.ratio ? ratio_text(*pair.ratio) : "-";
  return pair.base && pair.other ? difference_text(*pair.other - *pair.base, metric) : "-";
}

TextTable pairs_table(const Comparison& comparison, const ComparedValue& value) {
  TextTable table;
  const bool notes =
      std::ranges::any_of(value.pairs, [](const ComparedPair& pair) { return !pair.notes.empty(); });
  if (!value.pairs.empty()) {
    for (const auto& [key, text] : value.pairs.front().settings) table.add_column(key, false);
  }
  const std::string base = label(comparison, value.base), other = label(comparison, value.other);
  for (const std::string& title :
       {base, other, is_speed(comparison.metric) ? base + " / " + other : "difference"})
    table.add_column(title);
  for (const auto& [title, importance] :
       {std::pair("first epoch", 30), {"setup", 20}, {"data wait", 10}, {"largest loss difference", 40}})
    table.columns.push_back({.title = title, .importance = importance});
  if (notes) table.add_column("but");
  for (const ComparedPair& pair : value.pairs) {
    std::vector<std::string> row;
    for (const auto& [key, text] : pair.settings) row.push_back(text);
    for (const auto& [number, jobs] : {std::pair(pair.base, pair.base_jobs), {pair.other, pair.other_jobs}}) {
      const bool is_marked = jobs > 1 && is_time(comparison.metric);
      row.push_back((is_marked ? "~" : "") + metric_text(number, comparison.metric));
    }
    row.push_back(change_text(pair, comparison.metric));
    row.push_back(both(pair.first_epoch_base, pair.first_epoch_other));
    row.push_back(both(pair.setup_base, pair.setup_other));
    row.push_back(both(pair.data_wait_base, pair.data_wait_other));
    row.push_back(curves_text(pair.curves));
    if (notes) row.push_back(fmt::format("{}", fmt::join(pair.notes, "; ")));
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string interval_text(const MeanEstimate& estimate, const auto& text) {
  if (!estimate.interval) return "";
  return fmt::format("; 95% interval {} to {}", text(estimate.interval->first),
                     text(estimate.interval->second));
}

// The ratios the other way round.
MeanEstimate inverse(MeanEstimate ratio) {
  ratio.mean = 1 / ratio.mean;
  if (ratio.interval) ratio.interval = {1 / ratio.interval->second, 1 / ratio.interval->first};
  return ratio;
}

// "cuda:0 is 14.2 times as fast as cpu (geometric mean of 8 pairs; 95% interval 12.1 to 16.7)".
std::string sentence(const Comparison& comparison, const ComparedValue& value) {
  const std::string base = label(comparison, value.base), other = label(comparison, value.other);
  if (value.pairs.empty())
    return fmt::format("No run with {} differs from one with {} in nothing else{}{}.", other, base,
                       value.of_one.empty() ? "" : ": only one of them has ", fmt::join(value.of_one, ", "));
  if (is_speed(comparison.metric) && value.ratio) {
    // For the faster one: how many times as much it does in the same time.
    const double mean = value.ratio->mean;
    const Faster names = faster_of(value, is_time(comparison.metric) ? mean : 1 / mean);
    const MeanEstimate ratio = mean < 1 ? inverse(*value.ratio) : *value.ratio;
    return fmt::format("{} is {} times as fast as {} in {} (geometric mean of {}{}).",
                       label(comparison, names.faster), ratio_text(ratio.mean),
                       label(comparison, names.slower), comparison.metric, counted(ratio.count, "pair"),
                       interval_text(ratio, ratio_text));
  }
  if (!value.difference) return fmt::format("No pair has {}.", comparison.metric);
  const auto text = [&](double difference) { return difference_text(difference, comparison.metric); };
  return fmt::format("{} of {} against {}: {} (mean of {}{}).", comparison.metric, other, base,
                     text(value.difference->mean), counted(value.difference->count, "pair"),
                     interval_text(*value.difference, text));
}

int jobs_of(const ComparedPair& pair) { return std::max(pair.base_jobs, pair.other_jobs); }

bool any_shared(const Comparison& comparison) {
  for (const ComparedValue& value : comparison.values) {
    for (const ComparedPair& pair : value.pairs) {
      if (jobs_of(pair) > 1) return true;
    }
  }
  return false;
}

// "left out: 16 runs, the first of them runs/s/lr=0.1,device=cuda: skipped".
std::string names_text(const std::string& what, const std::vector<std::string>& names) {
  constexpr std::size_t kMaxNames = 3;
  if (names.size() <= kMaxNames) return fmt::format("{}: {}", what, fmt::join(names, "; "));
  return fmt::format("{}: {} runs, the first of them {}", what, names.size(), names.front());
}

// What the tables do not show: a line each, without an end.
std::vector<std::string> remarks(const Comparison& comparison) {
  std::vector<std::string> lines;
  if (is_time(comparison.metric) && any_shared(comparison))
    lines.emplace_back("~ timed while runs shared the machine");
  if (!comparison.alone.empty()) lines.push_back(names_text("without a partner", comparison.alone));
  if (!comparison.unfinished.empty()) lines.push_back(names_text("left out", comparison.unfinished));
  return lines;
}

Json estimate_json(const std::optional<MeanEstimate>& estimate) {
  if (!estimate) return nullptr;
  Json json = {{"mean", estimate->mean}, {"pairs", estimate->count}};
  if (estimate->interval) json["interval95"] = {estimate->interval->first, estimate->interval->second};
  return json;
}

Json pair_json(const ComparedPair& pair) {
  Json settings = Json::object();
  for (const auto& [key, text] : pair.settings) settings[key] = text;
  const auto two = [](const OptionalNumber& base, const OptionalNumber& other) {
    return Json{{"base", json_number(base)}, {"other", json_number(other)}};
  };
  return {{"settings", settings},
          {"runs", {{"base", pair.base_run}, {"other", pair.other_run}}},
          {"metric", two(pair.base, pair.other)},
          {"ratio", json_number(pair.ratio)},
          {"first_epoch_seconds", two(pair.first_epoch_base, pair.first_epoch_other)},
          {"setup_seconds", two(pair.setup_base, pair.setup_other)},
          {"data_wait_seconds", two(pair.data_wait_base, pair.data_wait_other)},
          {"curves",
           {{"epochs", pair.curves.epochs},
            {"same_bits", pair.curves.same_bits},
            {"largest_loss_difference", json_number(pair.curves.largest_loss_difference)},
            {"epoch", pair.curves.epoch}}},
          {"jobs", jobs_of(pair)},
          {"notes", pair.notes}};
}

// A row per pair, with plain numbers and seconds.
std::string comparison_csv(const Comparison& comparison) {
  std::string csv =
      csv_row({"by", "base", "other", "base_run", "other_run", "metric", "base_value", "other_value", "ratio",
               "base_first_epoch_seconds", "other_first_epoch_seconds", "base_setup_seconds",
               "other_setup_seconds", "base_data_wait_seconds", "other_data_wait_seconds", "same_bits",
               "largest_loss_difference", "jobs", "notes"});
  for (const ComparedValue& value : comparison.values) {
    for (const ComparedPair& pair : value.pairs) {
      csv += csv_row(
          {comparison.key, value.base, value.other, pair.base_run, pair.other_run, comparison.metric,
           csv_number(pair.base), csv_number(pair.other), csv_number(pair.ratio),
           csv_number(pair.first_epoch_base), csv_number(pair.first_epoch_other), csv_number(pair.setup_base),
           csv_number(pair.setup_other), csv_number(pair.data_wait_base), csv_number(pair.data_wait_other),
           pair.curves.same_bits ? "true" : "false", csv_number(pair.curves.largest_loss_difference),
           std::to_string(jobs_of(pair)), fmt::format("{}", fmt::join(pair.notes, "; "))});
    }
  }
  return csv;
}

}  // namespace

Json comparison_json(const Comparison& comparison) {
  Json json = {{"by", comparison.key}, {"metric", comparison.metric}, {"values", Json::array()}};
  for (const ComparedValue& value : comparison.values) {
    Json pairs = Json::array();
    for (const ComparedPair& pair : value.pairs) pairs.push_back(pair_json(pair));
    json["values"].push_back({{"base", value.base},
                              {"other", value.other},
                              {"ratio", estimate_json(value.ratio)},
                              {"difference", estimate_json(value.difference)},
                              {"pairs", std::move(pairs)}});
  }
  json["without_partner"] = comparison.alone;
  json["unfinished"] = comparison.unfinished;
  return json;
}

std::string comparison_text(const Comparison& comparison, TableFormat format, bool unicode, int width) {
  if (format == TableFormat::kCsv) return comparison_csv(comparison);
  const bool is_text = format == TableFormat::kText;
  const auto escaped = [format, is_text](const std::string& text) {
    return is_text ? text : format == TableFormat::kLatex ? latex_text(text) : markdown_text(text);
  };
  std::string text;
  std::vector<std::string> left_out;
  for (const ComparedValue& value : comparison.values) {
    if (is_text)
      text += fmt::format("{}: {} against {}, {}\n\n", comparison.key, value.other, value.base,
                          comparison.metric);
    if (!value.pairs.empty()) {
      TextTable table = pairs_table(comparison, value);
      if (is_text && width > 0) left_out = table.fit(width);
      text += formatted_table(table, format, unicode) + "\n";
    }
    text += escaped(sentence(comparison, value)) + "\n\n";
  }
  text += not_shown_text(left_out);
  for (const std::string& line : remarks(comparison)) text += escaped(line) + (is_text ? "\n" : "\n\n");
  if (text.ends_with("\n\n")) text.pop_back();
  return text;
}

}  // namespace sweep
