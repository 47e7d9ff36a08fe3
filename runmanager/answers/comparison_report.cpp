#include "runmanager/answers/comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "core/base/text.h"
#include "runmanager/records/results.h"
#include "runmanager/records/run_metric.h"
#include "runmanager/terminal/table.h"
#include "runmanager/terminal/terminal.h"
#include "runmanager/text/json_output.h"
#include "runmanager/text/table_text.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;
using OptionalNumbers = Sides<std::optional<double>>;

// What is also told of both sides: times, by their names in files and in tables.
struct Times {
  const char *key, *title;
  int importance;  // in a table
  OptionalNumbers ComparedPair::*of_pair;
};
constexpr std::array<Times, 3> kTimes = {
    {{"first_epoch_seconds", "first epoch", 30, &ComparedPair::first_epoch},
     {"setup_seconds", "setup", 20, &ComparedPair::setup},
     {"data_wait_seconds", "data wait", 10, &ComparedPair::data_wait}}};

std::string ratio_text(double ratio) {
  const char* const form = ratio < 0.1 || ratio >= 1e6 ? "{:.2g}" : ratio < 10 ? "{:.2f}" : "{:.1f}";
  return fmt::format(fmt::runtime(form), ratio);
}

// "" if neither is known.
std::string both(const OptionalNumbers& seconds) {
  if (!seconds.base && !seconds.other) return "";
  const auto text = [](const std::optional<double>& of_side) {
    return of_side ? human_seconds(*of_side) : "-";
  };
  return text(seconds.base) + " / " + text(seconds.other);
}

// "" if neither run has a loss.
std::string curves_text(const CurveParity& curves) {
  if (curves.epochs == 0) return "";
  if (curves.same_bits) return "same bits";
  if (!curves.largest_loss_difference) return "";
  const char* const position = curves.is_step ? "step" : "epoch";
  if (*curves.largest_loss_difference == 0) return "0 in " + counted(curves.epochs, position);
  return fmt::format("{:.2g} in {} {}", shown(*curves.largest_loss_difference), position, curves.epoch);
}

std::string difference_text(double difference, const Metric& metric) {
  if (metric.unit == MetricUnit::kShare) return fmt::format("{:+.2f} points", 100 * shown(difference));
  return fmt::format("{:+.4g}", shown(difference));
}

// Devices and directories speak for themselves, numbers do not.
std::string label(const Comparison& comparison, const std::string& value) {
  const bool speaks = comparison.key == "device" || comparison.key == kSweepKey;
  return speaks ? value : comparison.key + "=" + value;
}

// Whether a ratio tells more than a difference.
bool is_speed(const Metric& metric) { return metric.part == MetricPart::kTime; }

std::string change_text(const ComparedPair& pair, const Metric& metric) {
  const auto& [base, other] = pair.metric;
  if (is_speed(metric)) return pair.ratio ? ratio_text(*pair.ratio) : "-";
  return base && other ? difference_text(*other - *base, metric) : "-";
}

std::string notes_text(const ComparedPair& pair) { return fmt::format("{}", fmt::join(pair.notes, "; ")); }

// `base` and `other`: what the two sides are called. `is_text`: notes, which may be long, have no
// column: they follow the rows.
TextTable pairs_table(const Comparison& comparison, const std::vector<ComparedPair>& pairs,
                      const std::string& base, const std::string& other, bool is_text) {
  const Metric& metric = *comparison.metric;
  TextTable table;
  if (pairs.empty()) return table;
  for (std::size_t i = 0; i < pairs.front().settings.size(); ++i)
    table.add_column({.title = pairs.front().settings[i].first, .right_aligned = false, .leads = true}, pairs,
                     [i](const ComparedPair& pair) { return pair.settings[i].second; });
  const auto timed = [&metric](const std::optional<double>& number, int jobs) {
    return (jobs > 1 && is_time(metric) ? "~" : "") + metric_text(metric, number, "-");
  };
  table.add_column({.title = base}, pairs,
                   [&](const ComparedPair& pair) { return timed(pair.metric.base, pair.jobs.base); });
  table.add_column({.title = other}, pairs,
                   [&](const ComparedPair& pair) { return timed(pair.metric.other, pair.jobs.other); });
  table.add_column({.title = is_speed(metric) ? base + " / " + other : "difference"}, pairs,
                   [&](const ComparedPair& pair) { return change_text(pair, metric); });
  for (const Times& times : kTimes)
    table.add_column({.title = times.title, .importance = times.importance}, pairs,
                     [&](const ComparedPair& pair) { return both(pair.*times.of_pair); });
  table.add_column({.title = "largest loss difference", .importance = 40}, pairs,
                   [](const ComparedPair& pair) { return curves_text(pair.curves); });
  if (!is_text) table.add_column({.title = "but"}, pairs, notes_text);
  table.drop_empty_columns();
  for (const ComparedPair& pair : pairs)
    table.tails.push_back(pair.notes.empty() ? "" : "but " + notes_text(pair));
  return table;
}

// Whether the terminal has room for all columns that cannot be left out.
bool fits(TextTable table, const TableStyle& style) {
  if (style.format != TableFormat::kText || style.width == 0) return true;
  table.fit(style.width, style.unicode);
  return table.width() <= style.width;
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
  const Metric& metric = *comparison.metric;
  if (is_speed(metric) && value.ratio) {
    // For the faster one: how many times as much it does in the same time.
    const double mean = value.ratio->mean;
    const Faster names = faster_of(value, is_time(metric) ? mean : 1 / mean);
    const MeanEstimate ratio = mean < 1 ? inverse(*value.ratio) : *value.ratio;
    return fmt::format("{} is {} times as fast as {} in {} (geometric mean of {}{}).",
                       label(comparison, names.faster), ratio_text(ratio.mean),
                       label(comparison, names.slower), metric.key, counted(ratio.count, "pair"),
                       interval_text(ratio, ratio_text));
  }
  if (!value.difference) return fmt::format("No pair has {}.", metric.key);
  const auto text = [&](double difference) { return difference_text(difference, metric); };
  return fmt::format("{} of {} against {}: {} (mean of {}{}).", metric.key, other, base,
                     text(value.difference->mean), counted(value.difference->count, "pair"),
                     interval_text(*value.difference, text));
}

int jobs_of(const ComparedPair& pair) { return std::max(pair.jobs.base, pair.jobs.other); }

// "left out: 16 runs, the first of them runs/s/lr=0.1,device=cuda: skipped".
std::string names_text(const std::string& what, const std::vector<std::string>& names) {
  constexpr std::size_t kMaxNames = 3;
  if (names.size() <= kMaxNames) return fmt::format("{}: {}", what, fmt::join(names, "; "));
  return fmt::format("{}: {} runs, the first of them {}", what, names.size(), names.front());
}

// What the tables do not show: a line each, without an end.
std::vector<std::string> remarks(const Comparison& comparison) {
  std::vector<std::string> lines;
  const bool any_shared = std::ranges::any_of(comparison.values, [](const ComparedValue& value) {
    return std::ranges::any_of(value.pairs, [](const ComparedPair& pair) { return jobs_of(pair) > 1; });
  });
  if (is_time(*comparison.metric) && any_shared) lines.emplace_back("~ timed while runs shared the machine");
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
  const auto sides = [](const OptionalNumbers& of) {
    return Json{{"base", json_number(of.base)}, {"other", json_number(of.other)}};
  };
  Json json = {{"settings", settings},
               {"runs", {{"base", pair.runs.base}, {"other", pair.runs.other}}},
               {"metric", sides(pair.metric)},
               {"ratio", json_number(pair.ratio)}};
  for (const Times& times : kTimes) json[times.key] = sides(pair.*times.of_pair);
  json["curves"] = {{"epochs", pair.curves.epochs},
                    {"same_bits", pair.curves.same_bits},
                    {"largest_loss_difference", json_number(pair.curves.largest_loss_difference)},
                    {"epoch", pair.curves.epoch}};
  json["jobs"] = jobs_of(pair);
  json["notes"] = pair.notes;
  return json;
}

// A row per pair, with plain numbers and seconds.
std::string comparison_csv(const Comparison& comparison) {
  TextTable table(
      {"by", "base", "other", "base_run", "other_run", "metric", "base_value", "other_value", "ratio"});
  for (const Times& times : kTimes)
    for (const char* side : {"base_", "other_"}) table.add_column(std::string(side) + times.key);
  for (const char* title : {"same_bits", "largest_loss_difference", "jobs", "notes"}) table.add_column(title);
  for (const ComparedValue& value : comparison.values) {
    for (const ComparedPair& pair : value.pairs) {
      std::vector<std::string>& row = table.rows.emplace_back();
      row = {comparison.key,
             value.base,
             value.other,
             pair.runs.base,
             pair.runs.other,
             std::string(comparison.metric->key),
             csv_number(pair.metric.base),
             csv_number(pair.metric.other),
             csv_number(pair.ratio)};
      for (const Times& times : kTimes) {
        const auto& [base, other] = pair.*times.of_pair;
        row.insert(row.end(), {csv_number(base), csv_number(other)});
      }
      row.insert(row.end(),
                 {pair.curves.same_bits ? "true" : "false", csv_number(pair.curves.largest_loss_difference),
                  std::to_string(jobs_of(pair)), notes_text(pair)});
    }
  }
  return formatted_table(table, {TableFormat::kCsv});
}

}  // namespace

Json comparison_json(const Comparison& comparison) {
  Json json = {{"by", comparison.key}, {"metric", comparison.metric->key}, {"values", Json::array()}};
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

std::string comparison_text(const Comparison& comparison, const TableStyle& style) {
  if (style.format == TableFormat::kCsv) return comparison_csv(comparison);
  const bool is_text = style.format == TableFormat::kText;
  const auto escaped = [&style, is_text](const std::string& text) {
    return is_text                               ? wrapped(text, style.width)
           : style.format == TableFormat::kLatex ? latex_text(text)
                                                 : markdown_text(text);
  };
  std::string text;
  for (const ComparedValue& value : comparison.values) {
    TextTable table = pairs_table(comparison, value.pairs, label(comparison, value.base),
                                  label(comparison, value.other), is_text);
    std::string title =
        fmt::format("{}: {} against {}, {}", comparison.key, value.other, value.base, comparison.metric->key);
    if (!fits(table, style)) {
      table = pairs_table(comparison, value.pairs, "base", "other", is_text);
      title = fmt::format("{}: {} (other) against {} (base), {}", comparison.key, value.other, value.base,
                          comparison.metric->key);
    }
    if (is_text) text += wrapped(title, style.width) + "\n\n";
    if (!value.pairs.empty()) text += formatted_table(std::move(table), style) + "\n";
    text += escaped(sentence(comparison, value)) + "\n\n";
  }
  for (const std::string& line : remarks(comparison)) text += escaped(line) + (is_text ? "\n" : "\n\n");
  if (text.ends_with("\n\n")) text.pop_back();
  return text;
}

}  // namespace sweep
