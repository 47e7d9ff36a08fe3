#include "runmanager/answers/effects.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/printable.h"
#include "core/base/text.h"
#include "runmanager/records/earlier_starts/sweep_changes.h"
#include "runmanager/terminal/table.h"
#include "runmanager/terminal/terminal.h"
#include "runmanager/text/json_output.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

std::string f_text(const std::optional<double>& f, const char* none) {
  return f ? fmt::format("{:.3g}", *f) : none;
}

std::string keys_text(const Effect& effect, bool unicode) {
  return fmt::format("{}", fmt::join(effect.keys, unicode ? " × " : " x "));
}

std::string half_text(const EffectLevel& level, const Metric& metric) {
  if (!level.metric.interval) return "-";
  return metric_text(metric, level.metric.interval->second - level.metric.mean);
}

// The share that neither settings, pairs nor repeats explain, if repeats are the error.
double rest_share(const Effects& effects) {
  double rest = 1 - effects.error_share;
  for (const Effect& effect : effects.effects) rest -= effect.share;
  return std::max(0.0, rest);
}

// Those that change something.
std::size_t settings_count(const Effects& effects) {
  return static_cast<std::size_t>(std::ranges::count_if(
      effects.effects, [](const Effect& effect) { return effect.keys.size() == 1 && effect.degrees > 0; }));
}

TextTable shares_table(const Effects& effects, const TableStyle& style) {
  const char* none = style.format == TableFormat::kCsv ? "" : "-";
  TextTable table({"setting", "best", "share", "F", "p"}, 2);
  table.set_importances({kNeeded, 30, kNeeded, 10, 20});
  table.columns[0].leads = table.columns[1].leads = true;
  for (const Effect& effect : effects.effects) {
    const std::string best = effect.levels.empty()     ? ""
                             : effect.sum_squares == 0 ? "any"
                                                       : effect.levels[effect.best].value;
    table.rows.push_back({keys_text(effect, style.unicode), best, share_cell(effect.share, style.format),
                          f_text(effect.f, none), p_text(effect.p, none)});
  }
  const bool has_repeats = effects.error == EffectError::kRepeats;
  if (has_repeats && settings_count(effects) > 2)
    table.rows.push_back(
        {"more of them together", "", share_cell(rest_share(effects), style.format), "", ""});
  if (effects.error != EffectError::kNone) {
    const char* name = has_repeats                    ? "repeats"
                       : settings_count(effects) == 2 ? "both together"
                                                      : "more of them together";
    table.rows.push_back({name, "", share_cell(effects.error_share, style.format), "", ""});
  }
  return table;
}

TextTable levels_table(const Effects& effects) {
  TextTable table({"setting", "value", "mean", "+-"}, 2);
  table.set_importances({kNeeded, kNeeded, kNeeded, 10});
  table.columns[0].leads = table.columns[1].leads = true;
  for (const Effect& effect : effects.effects) {
    for (std::size_t i = 0; i < effect.levels.size(); ++i) {
      const EffectLevel& level = effect.levels[i];
      table.rows.push_back({i == 0 ? effect.keys[0] : "", level.value,
                            metric_text(*effects.goal.metric, level.metric.mean),
                            half_text(level, *effects.goal.metric)});
    }
  }
  return table;
}

TextTable front_table(const Effects& effects) {
  TextTable table;
  for (std::size_t i = 0; i < effects.front[0].settings.size(); ++i)
    table.add_column({.title = effects.front[0].settings[i].first,
                      .right_aligned = false,
                      .importance = 10,
                      .leads = true},
                     effects.front, [i](const FrontRun& run) { return run.settings[i].second; });
  const Metric& metric = *effects.goal.metric;
  table.add_column({.title = std::string(metric.key)}, effects.front,
                   [&](const FrontRun& run) { return metric_text(metric, run.metric); });
  table.add_column({.title = "time"}, effects.front,
                   [](const FrontRun& run) { return human_seconds(run.run_seconds); });
  return table;
}

std::string error_text(EffectError error) {
  switch (error) {
    case EffectError::kNone:
      return "Without repeats there is nothing to test a single setting against.\n";
    case EffectError::kRepeats:
      return "p: how likely chance alone, as between repeats, makes such a difference. +-: 95 % intervals.\n";
    case EffectError::kInteractions:
      return "p: how likely chance alone makes such a difference, judged by what settings do together, since "
             "there are no repeats. +-: 95 % intervals.\n";
  }
  return "";
}

Json effect_json(const Effect& effect) {
  Json json = {{"keys", effect.keys},        {"sum_squares", json_number(effect.sum_squares)},
               {"degrees", effect.degrees},  {"share", json_number(effect.share)},
               {"f", json_number(effect.f)}, {"p", json_number(effect.p)}};
  if (effect.levels.empty()) return json;
  json["best"] = effect.sum_squares == 0 ? Json() : Json(effect.levels[effect.best].value);
  for (const EffectLevel& level : effect.levels) {
    Json of_level = {{"value", level.value},
                     {"mean", json_number(level.metric.mean)},
                     {"runs", level.metric.count},
                     {"interval", nullptr}};
    if (level.metric.interval)
      of_level["interval"] = {json_number(level.metric.interval->first),
                              json_number(level.metric.interval->second)};
    json["levels"].push_back(std::move(of_level));
  }
  return json;
}

std::string effects_text(const Effects& effects, const std::vector<TextTable>& tables, TableStyle style) {
  style.format = TableFormat::kText;
  std::string text;
  // Tables that are too wide all the same stay as they are.
  const auto say = [&](const std::string& sentence) { text += wrapped(sentence, style.width); };
  say(fmt::format("Effects on {} ({} is better) of {}: {}{}; mean {}\n\n", effects.goal.metric->key,
                  effects.goal.largest_is_best ? "larger" : "smaller",
                  counted(effects.combinations * effects.repeats, "run"),
                  counted(effects.combinations, "combination"),
                  effects.repeats > 1 ? fmt::format(" with {} repeats each", effects.repeats) : "",
                  metric_text(*effects.goal.metric, effects.mean)));
  text += formatted_table(tables[0], style);
  say("\nshare: of all that the runs differ by. " + error_text(effects.error) + "\n");
  text += formatted_table(tables[1], style);
  if (!effects.front.empty()) {
    say("\nNo other combination is both faster and better than these:\n\n");
    text += formatted_table(tables[2], style);
  }
  if (!effects.left_out.empty())
    say(fmt::format("\nLeft out, because other combinations have fewer repeats: {}\n",
                    printable(first_names(effects.left_out))));
  return text;
}

Json effects_json(const Effects& effects) {
  constexpr const char* kErrors[] = {"none", "repeats", "interactions"};
  Json json = {{"metric", effects.goal.metric->key},
               {"larger_is_better", effects.goal.largest_is_best},
               {"combinations", effects.combinations},
               {"repeats", effects.repeats},
               {"mean", json_number(effects.mean)},
               {"effects", Json::array()},
               {"error",
                {{"source", kErrors[static_cast<std::size_t>(effects.error)]},
                 {"sum_squares", json_number(effects.error_sum_squares)},
                 {"degrees", effects.error_degrees},
                 {"share", json_number(effects.error_share)}}},
               {"front", Json::array()},
               {"left_out", effects.left_out}};
  for (const Effect& effect : effects.effects) json["effects"].push_back(effect_json(effect));
  for (const FrontRun& run : effects.front) {
    Json settings = Json::object();
    for (const auto& [key, value] : run.settings) settings[key] = value;
    json["front"].push_back({{"params", std::move(settings)},
                             {std::string(effects.goal.metric->key), json_number(run.metric)},
                             {"run_seconds", json_number(run.run_seconds)}});
  }
  return json;
}

}  // namespace

Answer answer_of(const Effects& effects, const TableStyle& style) {
  std::vector<TextTable> tables = {shares_table(effects, style), levels_table(effects)};
  if (!effects.front.empty()) tables.push_back(front_table(effects));
  std::string text = effects_text(effects, tables, style);
  return {std::move(text), effects_json(effects), std::move(tables)};
}

}  // namespace sweep
