#include "runmanager/report/headline.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/base/text.h"
#include "runmanager/records/judge.h"
#include "runmanager/records/repeats.h"
#include "runmanager/records/run_metric.h"
#include "runmanager/report/answer_tables.h"
#include "runmanager/report/curves_table.h"

namespace sweep {
namespace {

std::string best_sentence(const ReportData& data) {
  if (data.runs.empty()) return "There are no runs.";
  if (!data.best) {
    const bool any = std::any_of(data.records.begin(), data.records.end(),
                                 [](const RunRecord& run) { return run.status == RunStatus::kCompleted; });
    return any ? "No completed run has a result to judge it by." : "No run is completed yet.";
  }
  const RunRecord& run = data.records[*data.best];
  const std::string result =
      fmt::format("{} {}", metric_text(run_metric(run, data.metric), data.metric), metric_title(data.metric));
  const std::size_t completed = static_cast<std::size_t>(
      std::count_if(data.records.begin(), data.records.end(),
                    [](const RunRecord& other) { return other.status == RunStatus::kCompleted; }));
  if (completed == 1)
    return fmt::format("{} in the only completed run, {}.", result, run_label(data, *data.best, true));
  std::string test;
  for (const char* name : {"test_accuracy", "test_rmse"}) {
    const auto value = run_metric(run, name);
    if (value && data.metric != name)
      test = fmt::format(" ({} {})", metric_text(value, name), metric_title(name));
  }
  return fmt::format("Best of {} runs: {}{} with {}.", completed, result, test,
                     run_label(data, *data.best, true));
}

// "What matters most is lr: 0.01 is best with 85.01% on average, 0.001 worst with 78.78% (92% of all …)."
std::string effect_sentence(const Effect& effect, const Goal& goal, bool is_first) {
  const EffectLevel& best = effect.levels[effect.best];
  const auto worse = [&](const EffectLevel& a, const EffectLevel& b) {
    return goal.is_better(b.metric.mean, a.metric.mean);
  };
  const EffectLevel& worst = *std::min_element(effect.levels.begin(), effect.levels.end(), worse);
  const bool may_be_chance = effect.p && *effect.p >= 0.05;
  return fmt::format("{}{}: {} is best with {} on average, {} worst with {} ({:.0f}% of all differences{}).",
                     is_first ? "What matters most is " : "", effect.keys[0], best.value,
                     metric_text(*goal.metric, best.metric.mean), worst.value,
                     metric_text(*goal.metric, worst.metric.mean), 100 * effect.share,
                     may_be_chance ? "; it may be chance" : "");
}

void add_effects(const ReportData& data, std::vector<std::string>& sentences) {
  const std::vector<const Effect*> single = sorted_effects(data, 1);
  std::vector<std::string> without;
  int told = 0;
  bool is_first = single.size() > 1;
  for (const Effect* effect : single) {
    if (effect->share < kHardlyAnything) {
      without.push_back(effect->keys[0]);
    } else if (told++ < 3) {
      sentences.push_back(effect_sentence(*effect, data.goals[0], is_first));
      is_first = false;
    }
  }
  if (!without.empty())
    sentences.push_back(fmt::format("{} {} the {} hardly at all.", fmt::join(without, ", "),
                                    without.size() == 1 ? "changes" : "change", metric_title(data.metric)));
}

// The combination with the best mean: a single repeat may have been lucky.
void add_best_mean(const ReportData& data, std::vector<std::string>& sentences) {
  struct Mean {
    std::string label;
    std::size_t repeats;
    Spread spread;
  };
  std::optional<Mean> best;
  for (const CurveSeries& series : curve_series(data)) {
    std::vector<double> values;
    for (const std::size_t run : series.runs) {
      const auto value = run_metric(data.records[run], data.metric);
      if (data.records[run].status == RunStatus::kCompleted && value) values.push_back(*value);
    }
    if (values.size() < 2) continue;
    const Spread spread = spread_of(values);
    const bool better = !best || data.goals[0].is_better(spread.mean, best->spread.mean);
    if (std::isfinite(spread.mean) && better) best = {series.label, values.size(), spread};
  }
  if (!best) return;
  sentences.push_back(fmt::format("Best mean of {} repeats: {} ± {} with {}.", best->repeats,
                                  metric_text(best->spread.mean, data.metric),
                                  metric_text(best->spread.deviation, data.metric), best->label));
}

void add_comparison(const ReportData& data, std::vector<std::string>& sentences) {
  if (!data.compared) return;
  for (const ComparedValue& value : data.compared->values) {
    if (!value.ratio) continue;
    const Faster compared = faster_of(value, value.ratio->mean);
    sentences.push_back(fmt::format("{} trains {:.3g} times as fast as {} ({} of runs).", compared.faster,
                                    compared.times, compared.slower, counted(value.ratio->count, "pair")));
  }
}

}  // namespace

Headline headline(const ReportData& data) {
  Headline headline{best_sentence(data)};
  add_best_mean(data, headline.more);
  add_effects(data, headline.more);
  add_comparison(data, headline.more);
  return headline;
}

}  // namespace sweep
