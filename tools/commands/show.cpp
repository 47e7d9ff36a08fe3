// `sweep show`: prints the results in the directory of a sweep or a run.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/printable.h"
#include "core/engine/device.h"
#include "runmanager/answers/effects.h"
#include "runmanager/answers/importances.h"
#include "runmanager/answers/source_runs.h"
#include "runmanager/inference/trained_run.h"
#include "runmanager/inspect/run_listing.h"
#include "runmanager/records/earlier_starts/sweep_changes.h"
#include "runmanager/records/judge.h"
#include "runmanager/records/results.h"
#include "runmanager/records/run_files.h"
#include "runmanager/records/run_metric.h"
#include "runmanager/records/run_record_json.h"
#include "runmanager/terminal/results_table.h"
#include "tools/output.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

struct ShowOptions {
  fs::path directory;  // of a sweep or a run; also the path of a run.json
  TableFormat format = TableFormat::kText;
  bool effects = false, verbose = false, parameters = false;
  std::string sort;
  std::vector<std::string> columns;
  std::size_t top = 0;  // so many runs; 0: all
  std::string metric;   // of the effects
};

// A row per epoch, with everything that was measured of it.
TextTable epochs_table(const RunRecord& run, bool is_plain) {
  std::vector<const EpochRecord*> epochs;
  for_each_epoch(run, [&epochs](const EpochRecord& epoch) { epochs.push_back(&epoch); });
  std::vector<const Metric*> shown;
  for (const Metric& metric : metrics()) {
    if (metric.importance > 0 && metric.key != "run_seconds") shown.push_back(&metric);
  }
  for (const EpochRecord* epoch : epochs) {
    for (const auto& [metric, value] : epoch->values)
      if (metric->column == 0 && std::ranges::find(shown, metric) == shown.end()) shown.push_back(metric);
  }
  TextTable table;
  table.add_column({.title = "epoch"}, epochs,
                   [](const EpochRecord* epoch) { return std::to_string(epoch->epoch); });
  for (const Metric* metric : shown)
    table.add_column({.title = std::string(metric->title),
                      .importance = metric->importance,
                      .key = std::string(metric->key)},
                     epochs, [&](const EpochRecord* epoch) {
                       const std::optional<double> value = (*epoch)[*metric];
                       return is_plain ? csv_cell(*metric, value) : metric_text(*metric, value);
                     });
  for (const EpochRecord* epoch : epochs)
    table.tails.emplace_back(epoch->epoch == run.best_epoch ? "best" : "");
  table.drop_empty_columns();
  return table;
}

std::string run_text(const RunRecord& run) {
  std::string text;
  // Where a program computes is not known.
  const bool has_device = !run.device.empty() && !run.config.contains("command");
  text += fmt::format("{}: {}{}\n", run.name, to_string(run.status), has_device ? " on " + run.device : "");
  if (run.error) text += fmt::format("  {}\n", *run.error);
  for (const auto& [key, value] : run.params) text += fmt::format("  {} = {}\n", key, param_text(value));
  if (!run.epochs.empty() || run.untrained)
    text += formatted_table(epochs_table(run, false), style_of(TableFormat::kText));
  if (!run.stop_reason.empty()) text += fmt::format("  stopped early: {}\n", run.stop_reason);
  for (const auto& [name, value] : run.metrics) text += fmt::format("  {} = {}\n", name, short_number(value));
  if (run.setup_seconds) {
    text += fmt::format("  {} to set up{}\n", human_seconds(*run.setup_seconds),
                        run.placement.empty() ? "" : "; samples on the " + run.placement);
  }
  if (run.run_seconds) text += fmt::format("  {}\n", human_seconds(*run.run_seconds));
  return printable(text);
}

void print_run_directory(const fs::path& directory, TableFormat format) {
  const RunRecord run = read_current_run(directory);
  print_as(
      format, [&] { return to_json(run); }, [&] { return run_text(run); },
      [&] { return std::vector{epochs_table(run, format == TableFormat::kCsv)}; });
}

// The runs of several goals that no other one beats, with nothing but settings and goals.
std::string front_text(std::vector<RunRecord> runs, const Goals& goals) {
  put_front_first(runs, goals);
  runs.resize(front_runs(runs, goals).size());
  if (runs.empty()) return "";
  const std::vector<std::string> keys = param_keys(runs);
  TableOptions options = {.unicode = stdout_unicode()};
  for (const std::string& key : keys) options.columns.push_back(std::string(kParamPrefix) + key);
  for (const Goal& goal : goals) options.columns.emplace_back(goal.metric->key);
  options.goals = goals;
  return fmt::format("\nNo other run is better in {} than these:\n\n{}", goal_names(goals),
                     formatted_results(runs, keys, TableFormat::kText, options));
}

// The tables of several goals say in a first column whose they are. A CSV file holds one table.
std::vector<TextTable> named_tables(const std::vector<Answer>& answers, TableFormat format) {
  std::vector<TextTable> tables;
  for (const Answer& answer : answers) {
    for (TextTable table : answer.tables) {
      if (answers.size() > 1) {
        table.columns.insert(table.columns.begin(), Column{.title = "goal", .right_aligned = false});
        for (auto& row : table.rows) row.insert(row.begin(), answer.json.at("metric").get<std::string>());
      }
      const bool is_more = format == TableFormat::kCsv && &answer != &answers.front();
      if (is_more)
        std::ranges::move(table.rows, std::back_inserter(tables.front().rows));
      else
        tables.push_back(std::move(table));
      if (format == TableFormat::kCsv) break;
    }
  }
  return tables;
}

// `front`: follows the text.
void print_answers(const std::vector<Answer>& answers, TableFormat format, const std::string& front) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  std::vector<std::string> texts;
  for (const Answer& answer : answers) {
    texts.push_back(answer.text);
    list.push_back(answer.json);
  }
  print_as(
      format,
      [&] {
        return list.size() > 1 ? nlohmann::ordered_json{{"goals", list}} : list[0];
      },
      [&] { return fmt::format("{}{}", fmt::join(texts, "\n"), front); },
      [&] { return named_tables(answers, format); });
}

void print_effects(const std::vector<RunRecord>& runs, Goals goals, bool is_search,
                   const ShowOptions& options) {
  if (!options.metric.empty()) goals = {goal_for(metric_named(options.metric), goals)};
  std::vector<Answer> answers;
  for (const Goal& goal : goals) {
    if (is_search) {  // whose trials are no grid
      answers.push_back(answer_of(importances_of(runs, goal), style_of(options.format)));
      continue;
    }
    Effects effects = effects_of(runs, goal);
    // The runs that are both fast and good belong to the answer if there is no other goal.
    if (goals.size() > 1) effects.front.clear();
    answers.push_back(answer_of(effects, style_of(options.format)));
  }
  print_answers(answers, options.format, goals.size() > 1 ? front_text(runs, goals) : "");
}

// A start with fewer values of an axis keeps the runs of the others.
std::string other_runs_text(const fs::path& directory, const nlohmann::ordered_json& file) {
  const std::vector<std::string> names = runs_no_longer_listed(directory, file);
  if (names.empty()) return "";
  return fmt::format("\n{} more {} here that the sweep's file no longer has: {}\n", names.size(),
                     names.size() == 1 ? "run is" : "runs are", first_names(names));
}

void print_sweep_directory(const fs::path& directory, const ShowOptions& options) {
  RecordedSweep sweep = read_current_sweep(directory);
  std::vector<RunRecord>& runs = sweep.runs;
  const Goals goals = goals_of(sweep);
  if (options.effects) return print_effects(runs, goals, is_search(sweep.file), options);
  // Of equal runs the first one of the sweep is the best, whatever they are sorted by.
  const std::optional<std::size_t> best = best_run(runs, default_goals(runs, goals));
  const std::string best_name = best ? runs[*best].name : "";
  if (!options.sort.empty())
    sort_runs(runs, options.sort, goals);
  else
    put_front_first(runs, goals);
  const std::vector<std::string> keys = param_keys(runs);
  const TableOptions table = {.color = stdout_color(),
                              .unicode = stdout_unicode(),
                              .width = stdout_width(),
                              .skipped = options.verbose,
                              .columns = options.columns,
                              .goals = goals,
                              .top = options.top,
                              .best = best_name};
  if (options.format == TableFormat::kJson) {
    if (options.top > 0 && options.top < runs.size()) runs.resize(options.top);
    print_json(results_json(runs, fs::weakly_canonical(directory).filename().string()));
  } else if (options.format == TableFormat::kText) {
    std::cout << results_table(runs, keys, table)
              << wrapped(printable(other_runs_text(directory, sweep.file)), stdout_width());
  } else {
    std::cout << formatted_results(runs, keys, options.format, table);
  }
}

std::string device_text(const RunRecord& run) {
  try {
    return numbered_name(parse_device(run.device));
  } catch (const ConfigError&) {
    return run.device;  // of a program with a training loop of its own
  }
}

// Like PyTorch's named_parameters(), without running statistics.
void print_parameters(const fs::path& directory, TableFormat format) {
  const RecordedRun run = read_run(directory);
  const std::string device = device_text(run.record);
  const std::size_t total = run.network->parameter_count();
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  TextTable table({"parameter", "shape", "device", "elements"}, 3);
  table.set_importances({kNeeded, 20, 10, kNeeded});
  for (const Parameter& parameter : run.network->parameters()) {
    list.push_back({{"name", parameter.name},
                    {"shape", parameter.shape},
                    {"elements", parameter.count},
                    {"device", device}});
    table.rows.push_back(
        {parameter.name, to_string(parameter.shape), device, std::to_string(parameter.count)});
  }
  table.rows.push_back({"all", "", "", std::to_string(total)});
  print_as(
      format,
      [&] {
        return nlohmann::ordered_json{{"parameters", list}, {"elements", total}};
      },
      [&] { return formatted_table(table, style_of(format)); }, [&] { return std::vector{table}; });
}

int show(const ShowOptions& options) {
  const GivenOption sort{"--sort", !options.sort.empty()}, top{"--top", options.top > 0},
      columns{"--columns", !options.columns.empty()}, verbose{"--verbose", options.verbose};
  if (options.parameters) {
    refuse_given({sort, top, columns, verbose}, "is for the table of a sweep's runs, not for --parameters",
                 options.directory.string());
    print_parameters(options.directory, options.format);
    return kExitDone;
  }
  const fs::path& given = options.directory;
  const fs::path directory = given.filename() == "run.json" ? directory_of(given) : given;
  if (fs::exists(directory / "run.json")) {
    refuse_given({{"--effects", options.effects}, sort, top, columns, verbose},
                 "needs the directory of a sweep, not of one run", directory.string());
    print_run_directory(directory, options.format);
  } else if (has_runs(directory)) {
    if (options.format == TableFormat::kJson)
      refuse_given({columns}, "is for tables; JSON has everything of each run", directory.string());
    if (options.effects || options.format != TableFormat::kText)
      refuse_given({verbose}, "is for the table of runs as text", directory.string());
    print_sweep_directory(directory, options);
  } else {
    refuse_directory(given, "has no results",
                     "the directory of a sweep (with sweep.json), of a run (with run.json), or one with runs "
                     "in it");
  }
  return kExitDone;
}

}  // namespace

Command show_command() {
  return {
      .name = "show",
      .description = "print the results of a sweep's directory, or of one run's",
      .missing_argument = "a directory is needed: sweep show runs/NAME",
      .add_to = command_with<ShowOptions>(show, [](CLI::App& app, ShowOptions& options) {
        add_value(app, "directory DIR", options.directory, "runs/NAME, or a directory in it")->required();
        add_format_option(app, options.format);
        app.add_flag("--verbose", options.verbose, "a line for each skipped run");
        auto* parameters = app.add_flag("--parameters", options.parameters,
                                        "of one run: name, shape, device and size of each of its weights");
        auto* effects = app.add_flag("--effects", options.effects,
                                     "what each setting changes, alone and in pairs, by analysis of "
                                     "variance; and the runs that none beats in both time and metric. Of a "
                                     "search: how important each setting is, by PED-ANOVA");
        add_value(
            app, "--sort KEY", options.sort,
            "by a parameter, or by a metric (test_accuracy, loss, epoch_seconds, …) with the best first")
            ->excludes(effects);
        add_value(app, "--columns NAME,…", options.columns,
                  "only these, in this order: parameters, status, loss, test_accuracy, epoch_seconds, …")
            ->delimiter(',')
            ->excludes(effects);
        add_count(app, "--top", options.top, "only the first N runs of that order", 1, 1'000'000'000)
            ->excludes(effects);
        add_value(app, "--metric METRIC", options.metric,
                  "of the effects: test_accuracy, loss, epoch_seconds, …; default: the goal of the sweep, or "
                  "what else tells how good a run is")
            ->needs(effects);
        effects->excludes(parameters);
      })};
}

}  // namespace sweep
