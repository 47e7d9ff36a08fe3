#include "runmanager/report/page_parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <set>

#include "core/base/text.h"
#include "runmanager/config/params.h"
#include "runmanager/records/judge.h"
#include "runmanager/records/recorded_config.h"
#include "runmanager/records/repeats.h"
#include "runmanager/records/run_metric.h"
#include "runmanager/report/answer_tables.h"
#include "runmanager/report/curves_table.h"
#include "runmanager/terminal/table.h"
#include "runmanager/text/json_output.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

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

std::vector<std::string> shown_metrics(const ReportData& data) {
  std::vector<const RunRecord*> runs;
  for (const RunRecord& run : data.records) runs.push_back(&run);
  std::vector<std::string> names = metric_names(runs);
  // Times are first there; here they follow the metrics of quality.
  std::stable_partition(names.begin(), names.end(), [](const std::string& name) {
    return !is_time(name) && name != "images_per_second";
  });
  return names;
}

Json setting_cell(const SourceRun& run, const std::string& key) {
  const std::string text = setting_text(run, key);
  return text.empty() ? Json() : Json(text);
}

Json number_cell(const std::optional<double>& value, const std::string& metric) {
  if (!value) return nullptr;
  return Json::array({chart_number(value), metric_text(value, metric)});
}

const Json& member(const Json& object, const char* key) {
  static const Json kNone;
  return object.is_object() && object.contains(key) ? object.at(key) : kNone;
}

std::string text_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_null() ? "" : compact_json_text(value);
}

// Rows without repetition: most runs of a sweep say the same.
class Rows {
 public:
  void add(const std::string& what, const std::string& value) {
    if (value.empty() || !seen_.insert({what, value}).second) return;
    if (std::find(order_.begin(), order_.end(), what) == order_.end()) order_.push_back(what);
    table_.rows.push_back({what, value});
  }
  // Values of one name are together, names in the order they came.
  ChartTable take() {
    std::stable_sort(table_.rows.begin(), table_.rows.end(),
                     [this](const auto& a, const auto& b) { return place(a[0]) < place(b[0]); });
    return std::move(table_);
  }

 private:
  std::ptrdiff_t place(const Json& what) const {
    return std::find(order_.begin(), order_.end(), what.get<std::string>()) - order_.begin();
  }

  ChartTable table_{{"what", "value"}};
  std::set<std::pair<std::string, std::string>> seen_;
  std::vector<std::string> order_;
};

std::string machine_text(const Json& machine) {
  if (!machine.is_object()) return "";
  std::string text = text_of(member(machine, "processor"));
  if (const Json& cores = member(machine, "cores"); cores.is_number())
    text += fmt::format(", {} cores", cores.dump());
  if (const Json& memory = member(machine, "memory_bytes"); memory.is_number())
    text += fmt::format(", {:.1f} GiB memory", memory.get<double>() / (1 << 30));
  return text + ", " + text_of(member(machine, "system"));
}

void add_files(const std::string& title, const Json& files, Rows& rows) {
  for (const Json& file : files)
    rows.add(title, fmt::format("{}  {}", text_of(member(file, "sha256")),
                                fs::path(text_of(member(file, "path"))).filename().string()));
}

void add_run(const RunRecord& run, Rows& rows) {
  const Json& provenance = run.provenance;
  if (!provenance.is_object()) return;
  // A program's own numbers are not those of this engine.
  const std::string numerics = text_of(member(provenance, "numerics"));
  rows.add("Program",
           fmt::format("{} {}, revision {}, {}{}", text_of(member(provenance, "program")),
                       text_of(member(provenance, "version")), text_of(member(provenance, "revision")),
                       numerics.empty() ? "" : "numerics " + numerics + ", ",
                       text_of(member(provenance, "compiler"))));
  rows.add("Command", text_of(member(provenance, "command")));
  const Json& machine = member(provenance, "machine");
  rows.add("Machine", machine_text(machine));
  for (const Json& device : member(machine, "devices"))
    rows.add("Device",
             fmt::format("{}: {}, {}", text_of(member(device, "device")),
                         text_of(member(device, "description")), text_of(member(device, "software"))));
  rows.add("Data", text_of(member(member(provenance, "dataset"), "name")));
  add_files("Data, SHA-256", member(member(provenance, "dataset"), "files"), rows);
  add_files("Input, SHA-256", member(provenance, "inputs"), rows);
  const Json& git = member(provenance, "git");
  if (const std::string commit = text_of(member(git, "commit")); !commit.empty())
    rows.add("Git commit", commit + (member(git, "changed") == true ? ", with the changes of git.diff" : ""));
}

// Adds when the first run started and the last one ended, and how long all took together.
void add_times(const ReportData& data, Rows& rows) {
  std::string started, ended;
  double seconds = 0;
  for (const RunRecord& run : data.records) {
    if (!run.started.empty() && (started.empty() || run.started < started)) started = run.started;
    ended = std::max(ended, run.ended);
    seconds += own_seconds(run);
  }
  rows.add("First run started", started);
  rows.add("Last run ended", ended);
  if (seconds > 0) rows.add("All runs together", human_seconds(seconds));
}

}  // namespace

Headline headline(const ReportData& data) {
  Headline headline{best_sentence(data)};
  add_best_mean(data, headline.more);
  add_effects(data, headline.more);
  add_comparison(data, headline.more);
  return headline;
}

std::vector<std::string> run_notes(const ReportData& data) {
  struct Note {
    RunStatus status;
    std::string reason;
    std::size_t runs;
  };
  std::vector<Note> notes;
  for (const RunRecord& run : data.records) {
    if (run.status == RunStatus::kCompleted) continue;
    const std::string error = run.error.value_or(""), reason = error.substr(0, error.find('\n'));
    const auto found = std::find_if(notes.begin(), notes.end(), [&](const Note& note) {
      return note.status == run.status && note.reason == reason;
    });
    if (found == notes.end()) {
      notes.push_back({run.status, reason, 1});
    } else {
      ++found->runs;
    }
  }
  // Failures come first: a search prunes for many reasons.
  std::ranges::stable_sort(notes, {}, &Note::status);
  std::vector<std::string> lines;
  lines.reserve(notes.size());
  for (const Note& note : notes)
    lines.push_back(fmt::format("{} {}{}", counted(note.runs, "run"), to_string(note.status),
                                note.reason.empty() ? "" : ": " + note.reason));
  return lines;
}

RunsTable runs_table(const ReportData& data) {
  RunsTable table{.columns = {{"title", "kind"}}, .cells = {}};
  std::vector<std::function<Json(std::size_t)>> cells;
  const auto add = [&](const std::string& title, const char* kind, std::function<Json(std::size_t)> cell) {
    table.columns.rows.push_back({title, kind});
    cells.push_back(std::move(cell));
  };
  std::vector<std::string> keys = data.keys;
  if (has_repeats(data)) keys.emplace_back(kRepeatKey);
  for (const std::string& key : keys)
    add(key, "setting", [&data, key](std::size_t run) { return setting_cell(data.runs[run], key); });
  if (keys.empty()) add("run", "setting", [&](std::size_t run) { return Json(data.records[run].name); });
  add("status", "text", [&](std::size_t run) { return Json(to_string(data.records[run].status)); });
  const auto parent = [&data](std::size_t run) {
    const Lineage lineage = lineage_of(data.records[run].config);
    return lineage.empty() ? Json()
                           : Json(fmt::format("{} after {}", lineage.back().run, lineage.back().until));
  };
  if (std::ranges::any_of(data.records, [](const RunRecord& run) { return !lineage_of(run.config).empty(); }))
    add("continues", "text", parent);
  add("epochs", "number", [&](std::size_t run) {
    const std::size_t epochs = data.records[run].epochs.size();
    return epochs == 0 ? Json() : Json::array({epochs, std::to_string(epochs)});
  });
  for (const std::string& metric : shown_metrics(data))
    add(metric_title(metric), "number", [&data, metric](std::size_t run) {
      return number_cell(run_metric(data.records[run], metric), metric);
    });
  for (std::size_t run = 0; run < data.runs.size(); ++run) {
    std::vector<Json>& row = table.cells.rows.emplace_back();
    for (const auto& cell : cells) row.push_back(cell(run));
  }
  return table;
}

ChartTable provenance_rows(const ReportData& data) {
  Rows rows;
  for (const RunRecord& run : data.records) add_run(run, rows);
  add_times(data, rows);
  return rows.take();
}

ChartTable sweep_files(const ReportData& data) {
  ChartTable files{{"sweep", "text"}};
  for (Json file : data.files) {
    if (file.is_null()) continue;
    for (const char* key : {"runs", "provenance"}) file.erase(key);
    files.rows.push_back({text_of(member(file, "name")), json_text(file)});
  }
  return files;
}

}  // namespace sweep
