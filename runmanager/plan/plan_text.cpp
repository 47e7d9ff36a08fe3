// The plan as a table, and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>

#include "core/base/printable.h"
#include "core/base/text.h"
#include "runmanager/config/params.h"
#include "runmanager/plan/plan.h"
#include "runmanager/records/provenance.h"
#include "runmanager/records/run_record_json.h"
#include "runmanager/sweep/trial_schedule.h"
#include "runmanager/terminal/terminal.h"
#include "runmanager/text/json_output.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

std::string seconds_text(double seconds) {
  if (seconds < 1) return fmt::format("{:.0f} ms", seconds * 1000);
  if (seconds < 60) return fmt::format("{:.1f} s", seconds);
  if (seconds < 3600) return fmt::format("{:.1f} min", seconds / 60);
  if (seconds < 48 * 3600) return fmt::format("{:.1f} h", seconds / 3600);
  return fmt::format("{:.1f} days", seconds / (24 * 3600));
}

// A run that is kept needs no device, so it does not mention a missing one.
std::string note_of(const PlannedRun& run) {
  if (run.skip != nullptr && run.fate != "kept") return "skipped: " + *run.skip;
  if (run.fate == "new" && run.cost != nullptr) return run.note;
  return run.note.empty() ? std::string(run.fate) : fmt::format("{}: {}", run.fate, run.note);
}

// A number of a run, nothing if it is not known.
struct NumberColumn {
  const char *title, *key;
  int importance;
  std::optional<double> (*value)(const PlannedRun& run);
  std::string (*text)(double value);
};

std::string bytes_text_of(double bytes) { return bytes_text(static_cast<std::uint64_t>(bytes)); }
std::string plain_text(double value) { return fmt::format("{}", value); }

constexpr NumberColumn kNumbers[] = {
    {"parameters", "parameters", 2,
     [](const PlannedRun& run) { return std::optional<double>(run.cost->parameter_count); }, plain_text},
    {"steps/epoch", "steps_per_epoch", 1,
     [](const PlannedRun& run) { return std::optional<double>(run.cost->steps_per_epoch); }, plain_text},
    {"memory", "memory_bytes", 5,
     [](const PlannedRun& run) {
       return run.cost->memory ? std::optional<double>(run.cost->memory->total()) : std::nullopt;
     },
     bytes_text_of},
    {"disk", "disk_bytes", 3,
     [](const PlannedRun& run) {
       return run.trains() ? std::optional<double>(run.disk_bytes()) : std::nullopt;
     },
     bytes_text_of},
    {"time", "seconds", 6, [](const PlannedRun& run) { return run.trains() ? run.seconds() : std::nullopt; },
     seconds_text},
};
constexpr int kDeviceImportance = 4;

// Leaves out columns until names have room: their ends tell runs apart. Then cuts names. Returns the titles
// of the columns that are gone.
std::vector<std::string> fit_plan(TextTable& table, int width, bool unicode) {
  const std::vector<std::string> left_out = table.fit(width);
  const std::vector<int> widths = table.widths();
  const int rest = std::accumulate(widths.begin() + 1, widths.end(), kTableGap);
  constexpr int kShortestName = 8;
  const int name_width = std::max(kShortestName, width - rest);
  for (auto& row : table.rows) {
    if (static_cast<int>(row[0].size()) > name_width) row[0] = fit_width(row[0], name_width, unicode);
  }
  return left_out;
}

// "3 kept, 1 continued, 2 new": nothing if all are new.
std::string fates_text(const SweepPlan& plan) {
  std::string text;
  for (const char* fate : {"kept", "continued", "new", "replaced", "pruned", "in the way"}) {
    const auto count = std::ranges::count(plan.runs, fate, &PlannedRun::fate);
    if (count == static_cast<std::ptrdiff_t>(plan.runs.size()) && std::string_view(fate) == "new") return "";
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, fate);
  }
  return text;
}

std::string search_text(const Sweep& sweep) {
  if (!sweep.search || sweep.runs.empty()) return "";
  const SearchSpec& search = *sweep.search;
  if (adds_trials(search)) {
    return fmt::format("search: the first {} of at most {} trials; results choose the others\n",
                       sweep.runs.size(), total_trials(search, sweep.runs.front().epochs));
  }
  if (!has_rungs(search.method))
    return search.target || search.seconds ? "search: begins no trial once it has found enough\n" : "";
  const int epochs = sweep.runs.front().epochs;
  const double trained = TrialSchedule(search, sweep.runs.size(), epochs).total_epochs();
  return fmt::format("search: ends the worse trials early, which leaves {}{:.0f} of {} epochs\n",
                     search.method == SearchMethod::kAsha ? "about " : "", trained,
                     sweep.runs.size() * static_cast<std::size_t>(epochs));
}

const PlannedRun* largest_run(const SweepPlan& plan) {
  const PlannedRun* largest = nullptr;
  for (const PlannedRun& run : plan.runs) {
    if (!run.trains() || !run.cost->memory) continue;
    if (largest == nullptr || run.cost->memory->total() > largest->cost->memory->total()) largest = &run;
  }
  return largest;
}

std::string costs_text(const SweepPlan& plan) {
  std::string text;
  if (const PlannedRun* run = largest_run(plan)) {
    const MemoryEstimate& memory = *run->cost->memory;
    const std::optional<std::uint64_t> at_once = plan.memory_bytes();
    text += fmt::format("memory: {} at most", bytes_text(at_once.value_or(memory.total())));
    if (plan.jobs > 1) text += fmt::format(" with {} runs at once", plan.jobs);
    text += fmt::format(
        "; the largest run:\n  network and optimizer {}, batches {},\n  results {}, program {}, data {}\n",
        bytes_text(memory.engine), bytes_text(memory.loader), bytes_text(memory.results),
        bytes_text(memory.process), bytes_text(memory.data));
  }
  if (std::ranges::any_of(plan.runs, [](const PlannedRun& run) { return run.trains() && !run.cost->memory; }))
    text += "memory of GPUs is not estimated\n";
  if (const std::uint64_t disk = plan.disk_bytes(); disk > 0) {
    text += "disk: " + bytes_text(disk);
    if (plan.disk_free)
      text += fmt::format("; {} are free{}", bytes_text(*plan.disk_free),
                          *plan.disk_free < disk ? ", which is NOT ENOUGH" : "");
    text += "\n";
  }
  const std::optional<double> seconds = plan.seconds();
  if (seconds && *seconds > 0) text += fmt::format("time: {}\n", seconds_text(*seconds));
  return text;
}

template <typename Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

Json run_json(const PlannedRun& run) {
  Json json = {{"name", run.config->name}, {"params", to_json(run.config->params)}};
  if (run.cost != nullptr)
    json.update({{"device", run.device}, {"skip", run.skip != nullptr ? Json(*run.skip) : Json()}});
  json["fate"] = run.fate;
  if (!run.note.empty()) json["note"] = run.note;
  if (run.cost == nullptr) {
    json["command"] = run.command;
    return json;
  }
  const RunCost& cost = *run.cost;
  json["train_samples"] = cost.train_samples;
  json["steps_per_epoch"] = cost.steps_per_epoch;
  json["parameters"] = cost.parameter_count;
  json["training_flops"] = cost.training_flops;
  json["memory_bytes"] = cost.memory ? Json(cost.memory->total()) : Json();
  if (cost.memory)
    json["memory"] = {{"process", cost.memory->process},
                      {"engine", cost.memory->engine},
                      {"loader", cost.memory->loader},
                      {"results", cost.memory->results},
                      {"data", cost.memory->data}};
  json["disk_bytes"] = run.disk_bytes();
  json["seconds"] = or_null(run.seconds());
  return json;
}

Json excluded_json(const ExcludedRun& run) {
  return {{"name", run_name(run.params)}, {"params", to_json(run.params)}, {"reason", run.reason}};
}

std::string excluded_text(const Sweep& sweep) {
  std::string text;
  for (const ExcludedRun& run : sweep.excluded)
    text += fmt::format("left out: {} ({})\n", run_name(run.params), run.reason);
  return text;
}

// Writes the list one element after the other: there may be 100,000 of them.
template <typename Element>
void write_list(const std::vector<Element>& list, Json (*json_of)(const Element&), std::ostream& out) {
  const char* before = "[\n    ";
  for (const Element& element : list) {
    std::string text = json_of(element).dump(2, ' ', false, Json::error_handler_t::replace);
    for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; ++at)
      text.insert(at + 1, 4, ' ');
    out << before << printable(text);
    before = ",\n    ";
  }
  out << (list.empty() ? "[]" : "\n  ]");
}

bool is_of_program(const SweepPlan& plan) { return plan.sweep->runs.front().command != nullptr; }

// How a program would be started.
std::string program_text(const SweepPlan& plan) {
  std::string text;
  for (const PlannedRun& run : plan.runs) {
    text += fmt::format("{:<10} {}\n", run.fate, run.config->name);
    for (const std::string& line : {run.note, shell_command(run.command)})
      if (!line.empty()) text += fmt::format("{:10} {}\n", "", line);
  }
  text += excluded_text(*plan.sweep) +
          fmt::format("{} in {}\n", counted(plan.runs.size(), "run"), plan.directory.string()) +
          search_text(*plan.sweep);
  if (const auto max_runs = plan.gpus.max_runs())
    text += plan.gpus.problem().value_or(fmt::format("{} of the GPUs {} per run: up to {} at once",
                                                     plan.sweep->runs.front().command->gpus,
                                                     fmt::join(plan.gpus.gpus(), ", "), *max_runs)) +
            "\n";
  return text;
}

// Members of the plan itself.
Json totals_json(const SweepPlan& plan) {
  if (!is_of_program(plan))
    return {{"jobs", plan.jobs},
            {"threads", plan.threads},
            {"memory_bytes", or_null(plan.memory_bytes())},
            {"disk_bytes", plan.disk_bytes()},
            {"disk_free_bytes", or_null(plan.disk_free)},
            {"seconds", or_null(plan.seconds())}};
  if (!plan.gpus.max_runs()) return Json::object();
  const CommandSpec& spec = *plan.sweep->runs.front().command;
  return {
      {"gpus", {{"per_run", spec.gpus}, {"runs_per_gpu", spec.runs_per_gpu}, {"here", plan.gpus.gpus()}}}};
}

}  // namespace

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

TextTable plan_table(const SweepPlan& plan, TableFormat format) {
  const bool is_text = format == TableFormat::kText, is_plain = format == TableFormat::kCsv;
  if (is_of_program(plan)) {
    TextTable commands({"run", "note", "command"}, 3);
    for (const PlannedRun& run : plan.runs)
      commands.rows.push_back({run.config->name, note_of(run), shell_command(run.command)});
    return commands;
  }
  TextTable table({"run", "device"}, 2);
  table.columns[1].importance = kDeviceImportance;
  for (const NumberColumn& column : kNumbers)
    table.columns.push_back({.title = column.title, .importance = column.importance, .key = column.key});
  if (!is_text) table.add_column("note", false);
  for (const PlannedRun& run : plan.runs) {
    std::vector<std::string>& row = table.rows.emplace_back();
    row = {run.config->name, run.device};
    for (const NumberColumn& column : kNumbers) {
      const std::optional<double> value = column.value(run);
      row.push_back(!value ? "" : is_plain ? plain_text(*value) : column.text(*value));
    }
    (is_text ? table.tails : row).push_back(note_of(run));
  }
  if (!is_plain) table.drop_empty_columns();
  return table;
}

std::string plan_text(const SweepPlan& plan, int width, bool unicode) {
  if (is_of_program(plan)) return program_text(plan);
  TextTable table = plan_table(plan, TableFormat::kText);
  const std::vector<std::string> left_out =
      width > 0 ? fit_plan(table, width, unicode) : std::vector<std::string>();
  const TableLines lines = table_lines(table, unicode);
  std::string text = lines.titles + "\n" + lines.rule + "\n";
  for (const std::string& row : lines.rows) text += (width > 0 ? fit_width(row, width, unicode) : row) + "\n";
  text += excluded_text(*plan.sweep) + plan.sweep->name + ": " + counted(plan.runs.size(), "run");
  if (const std::string fates = fates_text(plan); !fates.empty()) text += ": " + fates;
  const auto is_skipped = [](const PlannedRun& run) { return run.skip != nullptr && run.fate != "kept"; };
  const auto skipped = std::ranges::count_if(plan.runs, is_skipped);
  if (skipped > 0) text += fmt::format(", {} of them skipped", skipped);
  if (!plan.sweep->excluded.empty()) text += fmt::format(", {} left out", plan.sweep->excluded.size());
  text += "\n" + search_text(*plan.sweep) + costs_text(plan);
  if (width > 0) {  // The notes in the table may be cut.
    std::set<std::string> reasons;
    for (const PlannedRun& run : plan.runs) {
      if (is_skipped(run)) reasons.insert(*run.skip);
    }
    for (const std::string& reason : reasons) text += "skipped: " + reason + "\n";
  }
  return text + not_shown_text(left_out, width);
}

void write_plan_json(const SweepPlan& plan, std::ostream& out) {
  out << "{\n  \"sweep\": " << compact_json_text(plan.sweep->name) << ",\n  \"runs\": ";
  write_list(plan.runs, run_json, out);
  out << ",\n  \"excluded\": ";
  write_list(plan.sweep->excluded, excluded_json, out);
  const Json totals = totals_json(plan);
  out << (totals.empty() ? "\n}\n" : "," + json_text(totals).substr(1));
}

}  // namespace sweep
