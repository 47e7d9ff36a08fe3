#include "runmanager/report/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/base/text.h"
#include "core/json/json_text.h"
#include "runmanager/config/params.h"
#include "runmanager/records/provenance.h"
#include "runmanager/records/recorded_config.h"
#include "runmanager/records/repeats.h"
#include "runmanager/records/run_files.h"
#include "runmanager/records/run_metric.h"
#include "runmanager/records/run_record_json.h"
#include "runmanager/report/charts.h"
#include "runmanager/sweepfile/key_path.h"
#include "runmanager/text/json_output.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

bool has_completed(const RunRecord& run) { return run.status == RunStatus::kCompleted; }

std::string best_sentence(const ReportData& data) {
  if (data.runs.empty()) return "There are no runs.";
  const auto completed = std::ranges::count_if(data.records, has_completed);
  if (!data.best)
    return completed > 0 ? "No completed run has a result to judge it by." : "No run is completed yet.";
  const RunRecord& run = data.records[*data.best];
  const Metric& metric = data.metric();
  const std::string result = fmt::format("{} {}", metric_text(metric, run_metric(run, metric)), metric.name),
                    label = run_label(data, *data.best, true);
  const std::size_t goals = data.goals.size();
  const std::string which = goals > 1 ? fmt::format(", the first of {} goals,", goals) : "";
  if (completed == 1) return fmt::format("{}{} in the only completed run, {}.", result, which, label);
  std::string test;
  for (const char* key : {"test_accuracy", "test_rmse"}) {
    const Metric& tested = metric_named(key);
    const auto value = run_metric(run, tested);
    if (value && &metric != &tested) test = fmt::format(" ({} {})", metric_text(tested, value), tested.name);
  }
  return fmt::format("Best of {} runs: {}{}{} with {}.", completed, result, test, which, label);
}

// "What matters most is lr: 0.01 is best with 85.01% on average, 0.001 worst with 78.78% (92% of all …)."
std::string effect_sentence(const Effect& effect, const Goal& goal, bool is_first) {
  const EffectLevel& best = effect.levels[effect.best];
  const auto worse = [&](const EffectLevel& a, const EffectLevel& b) {
    return goal.is_better(b.metric.mean, a.metric.mean);
  };
  const EffectLevel& worst = *std::ranges::min_element(effect.levels, worse);
  const bool may_be_chance = effect.p && *effect.p >= 0.05;
  return fmt::format("{}{}: {} is best with {} on average, {} worst with {} ({:.0f}% of all differences{}).",
                     is_first ? "What matters most is " : "", effect.keys[0], best.value,
                     metric_text(*goal.metric, best.metric.mean), worst.value,
                     metric_text(*goal.metric, worst.metric.mean), 100 * effect.share,
                     may_be_chance ? "; it may be chance" : "");
}

void tell_effects(const ReportData& data, std::vector<std::string>& sentences) {
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
                                    without.size() == 1 ? "changes" : "change", data.metric().name));
}

// The combination with the best mean: a single repeat may have been lucky.
void tell_best_mean(const ReportData& data, std::vector<std::string>& sentences) {
  const Metric& metric = data.metric();
  std::optional<Spread> best;
  std::string sentence;
  for (const CurveSeries& series : curve_series(data)) {
    std::vector<double> values;
    for (const std::size_t run : series.runs) {
      const auto value = run_metric(data.records[run], metric);
      if (has_completed(data.records[run]) && value) values.push_back(*value);
    }
    if (values.size() < 2) continue;
    const Spread spread = spread_of(values);
    if (!std::isfinite(spread.mean) || (best && !data.goals[0].is_better(spread.mean, best->mean))) continue;
    best = spread;
    sentence =
        fmt::format("Best mean of {} repeats: {} ± {} with {}.", values.size(),
                    metric_text(metric, spread.mean), metric_text(metric, spread.deviation), series.label);
  }
  if (best) sentences.push_back(std::move(sentence));
}

void tell_comparison(const ReportData& data, std::vector<std::string>& sentences) {
  if (!data.compared) return;
  for (const ComparedValue& value : data.compared->values) {
    if (!value.ratio) continue;
    const Faster compared = faster_of(value, value.ratio->mean);
    sentences.push_back(fmt::format("{} trains {:.3g} times as fast as {} ({} of runs).", compared.faster,
                                    compared.times, compared.slower, counted(value.ratio->count, "pair")));
  }
}

// The value of a parameter as the run had it: a path may be cut among its parameters, and a network is named
// there.
Json value_of(const RunRecord& run, const std::string& key, const ParamValue& param) {
  const JsonDocument config = document_of(run.config, run.name);
  Problems ignored;
  const std::optional<KeyPath> path =
      is_command_file(config) ? KeyPath{"params", key}
                              : resolve_key(key, JsonView(config).place(), KeyUse::kValue, ignored);
  const Json complete = path ? *find_path(config, *path) : Json();
  const bool is_name = complete.is_object() && key != "network" && !is_json_text(param);
  return complete.is_null() || is_name ? to_json(param) : complete;
}

// "lr=0.01"; a text that would be read as something else is in quotes.
std::string override_text(const std::string& key, const Json& value) {
  const std::string text = value.is_string() ? value.get<std::string>() : "";
  const bool is_plain =
      !text.empty() && !Json::accept(text) && text.find_first_of(",[]{}\"") == std::string::npos;
  return fmt::format("{}={}", key, is_plain ? text : value.dump());
}

std::string best_command(const ReportData& data) {
  if (!data.is_search || !data.best || data.directories.size() != 1) return "";
  const RunRecord& run = data.records[*data.best];
  // Settings of a population's last epochs alone are another training.
  if (is_member(run.config)) return "";
  std::vector<std::string> words = {"sweep", (data.directories[0] / kSweepFile).string()};
  const bool is_program = run.config.contains("command");
  Json point = Json::object();
  for (const auto& [key, value] : run.params) {
    if (key == kRepeatKey) continue;
    point[key] = value_of(run, key, value);
    // A program's parameter may have the name of a key of the file.
    words.push_back(override_text(is_program ? "params." + key : key, point[key]));
  }
  words.push_back("search.trials=1");
  // Where the search begins at points of its file, which other values of the axes would not have.
  if (data.files[0].value("search", Json()).contains("points"))
    words.push_back("search.points=" + Json::array({point}).dump());
  words.push_back(fmt::format("name={}-best", data.title));
  return shell_command(words);
}

// Times are first in metric_names(); here they follow the metrics of quality.
std::vector<const Metric*> shown_metrics(const ReportData& data) {
  std::vector<const RunRecord*> runs;
  for (const RunRecord& run : data.records) runs.push_back(&run);
  std::vector<const Metric*> metrics;
  for (const std::string& name : metric_names(runs)) metrics.push_back(&metric_named(name));
  std::stable_partition(metrics.begin(), metrics.end(),
                        [](const Metric* metric) { return metric->part != MetricPart::kTime; });
  return metrics;
}

// The value at a path of find_at(), or null: a record that somebody changed may lack anything.
const Json& member(const Json& json, std::string_view path) {
  static const Json kNone;
  const Json* const found = find_at(json, path);
  return found != nullptr ? *found : kNone;
}

std::string text_of(const Json& json, std::string_view path) {
  const Json& value = member(json, path);
  if (value.is_string()) return value.get<std::string>();
  return value.is_null() ? "" : compact_json_text(value);
}

// The values of each name, in the order they came, without repetition: most runs of a sweep say the same.
struct Facts {
  std::vector<std::pair<std::string, std::vector<std::string>>> list{};

  void add(const std::string& what, const std::string& value) {
    if (value.empty()) return;
    auto found = std::ranges::find(list, what, [](const auto& fact) { return fact.first; });
    if (found == list.end()) found = list.insert(found, {what, {}});
    if (std::ranges::find(found->second, value) == found->second.end()) found->second.push_back(value);
  }
};

std::string machine_text(const Json& machine) {
  if (!machine.is_object()) return "";
  std::string text = text_of(machine, "processor");
  if (const Json& cores = member(machine, "cores"); cores.is_number())
    text += fmt::format(", {} cores", cores.dump());
  if (const Json& memory = member(machine, "memory_bytes"); memory.is_number())
    text += fmt::format(", {:.1f} GiB memory", memory.get<double>() / (1 << 30));
  return text + ", " + text_of(machine, "system");
}

void add_files(const std::string& title, const Json& files, Facts& facts) {
  for (const Json& file : files)
    facts.add(title, fmt::format("{}  {}", text_of(file, "sha256"),
                                 fs::path(text_of(file, "path")).filename().string()));
}

void add_run(const RunRecord& run, Facts& facts) {
  const Json& provenance = run.provenance;
  if (provenance.empty()) return;
  // A program's own numbers are not those of this engine.
  const std::string numerics = text_of(provenance, "numerics");
  facts.add("Program", fmt::format("{} {}, revision {}, {}{}", text_of(provenance, "program"),
                                   text_of(provenance, "version"), text_of(provenance, "revision"),
                                   numerics.empty() ? "" : "numerics " + numerics + ", ",
                                   text_of(provenance, "compiler")));
  facts.add("Command", text_of(provenance, "command"));
  const Json& machine = member(provenance, "machine");
  facts.add("Machine", machine_text(machine));
  for (const Json& device : member(machine, "devices"))
    facts.add("Device", fmt::format("{}: {}, {}", text_of(device, "device"), text_of(device, "description"),
                                    text_of(device, "software")));
  facts.add("Data", text_of(provenance, "dataset.name"));
  add_files("Data, SHA-256", member(provenance, "dataset.files"), facts);
  add_files("Input, SHA-256", member(provenance, "inputs"), facts);
  if (const std::string commit = text_of(provenance, "git.commit"); !commit.empty())
    facts.add("Git commit",
              commit + (member(provenance, "git.changed") == true ? ", with the changes of git.diff" : ""));
}

// Adds when the first run started and the last one ended, and how long all took together.
void add_times(const ReportData& data, Facts& facts) {
  std::string started, ended;
  double seconds = 0;
  for (const RunRecord& run : data.records) {
    if (!run.started.empty() && (started.empty() || run.started < started)) started = run.started;
    ended = std::max(ended, run.ended);
    seconds += own_seconds(run);
  }
  facts.add("First run started", started);
  facts.add("Last run ended", ended);
  if (seconds > 0) facts.add("All runs together", human_seconds(seconds));
}

}  // namespace

Headline headline(const ReportData& data) {
  Headline headline{.best = best_sentence(data), .command = best_command(data)};
  tell_best_mean(data, headline.more);
  tell_effects(data, headline.more);
  tell_comparison(data, headline.more);
  return headline;
}

std::vector<std::string> run_notes(const ReportData& data) {
  std::map<std::pair<RunStatus, std::string>, std::size_t> reasons;
  std::vector<decltype(reasons)::const_iterator> notes;
  for (const RunRecord& run : data.records) {
    if (has_completed(run)) continue;
    const std::string error = run.error.value_or("");
    const auto [found, is_new] = reasons.try_emplace({run.status, error.substr(0, error.find('\n'))});
    if (is_new) notes.push_back(found);
    ++found->second;
  }
  // Failures come first: a search prunes for many reasons. What is still to come is last.
  std::ranges::stable_sort(notes, {}, [](const auto& note) {
    const RunStatus status = note->first.first;
    return std::pair(status <= RunStatus::kRunning, status);
  });
  std::vector<std::string> lines;
  for (const auto& note : notes) {
    const auto& [status, reason] = note->first;
    lines.push_back(fmt::format("{} {}{}", counted(note->second, "run"), to_string(status),
                                reason.empty() ? "" : ": " + reason));
  }
  return lines;
}

RunsTable runs_table(const ReportData& data) {
  RunsTable table{.columns = {{"title", "kind"}}, .cells = {}};
  table.cells.rows.resize(data.runs.size());
  const auto add = [&](std::string_view title, const char* kind, const auto& cell) {
    table.columns.rows.push_back({title, kind});
    for (std::size_t run = 0; run < data.runs.size(); ++run)
      table.cells.rows[run].push_back(cell(data.records[run], run));
  };
  const auto any = [&](const auto& has) { return std::ranges::any_of(data.records, has); };
  // Also those in which only runs without results differ, such as a device that is not there.
  const std::vector<std::string> keys = differing_keys(data.runs, [](const SourceRun& run) {
    return run.record.status != RunStatus::kPending || !run.record.epochs.empty();
  });
  const std::vector<const Metric*> metrics = shown_metrics(data);
  std::vector<std::string> others = {"status", "continues", "epochs"};
  for (const Metric* metric : metrics) others.emplace_back(metric->name);
  for (const std::string& key : keys)
    add(param_title(key, others), "setting", [&](const RunRecord&, std::size_t run) {
      const std::string text = setting_text(data.runs[run], key);
      return text.empty() ? Json() : Json(text);
    });
  if (keys.empty()) add("run", "setting", [](const RunRecord& run, std::size_t) { return run.name; });
  add("status", "text", [](const RunRecord& run, std::size_t) { return to_string(run.status); });
  if (any([](const RunRecord& run) { return !lineage_of(run.config).empty(); }))
    add("continues", "text", [](const RunRecord& run, std::size_t) {
      const Lineage lineage = lineage_of(run.config);
      return lineage.empty() ? Json()
                             : Json(fmt::format("{} after {}", lineage.back().run, lineage.back().until));
    });
  add("epochs", "number", [](const RunRecord& run, std::size_t) {
    const std::size_t epochs = run.epochs.size();
    return epochs == 0 ? Json() : Json::array({epochs, std::to_string(epochs)});
  });
  for (const Metric* metric : metrics)
    add(metric->name, "number", [&](const RunRecord& run, std::size_t) {
      const std::optional<double> value = run_metric(run, *metric);
      return value ? Json::array({chart_number(value), metric_text(*metric, value)}) : Json();
    });
  return table;
}

ChartTable provenance_rows(const ReportData& data) {
  Facts facts;
  for (const RunRecord& run : data.records) add_run(run, facts);
  add_times(data, facts);
  ChartTable table{{"what", "value"}};
  for (const auto& [what, values] : facts.list)
    for (const std::string& value : values) table.rows.push_back({what, value});
  return table;
}

ChartTable sweep_files(const ReportData& data) {
  ChartTable files{{"sweep", "text"}};
  for (Json file : data.files) {
    if (file.is_null()) continue;
    for (const char* key : {"runs", "provenance"}) file.erase(key);
    files.rows.push_back({text_of(file, "name"), json_text(file)});
  }
  return files;
}

}  // namespace sweep
