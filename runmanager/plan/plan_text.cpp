// The plan as a table, and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <unordered_map>

#include "runmanager/config/run_name.h"
#include "runmanager/plan/plan.h"
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

// A run that is kept needs no device, so it says nothing of one that is missing.
std::string note_of(const PlannedRun& run) {
  if (run.skip != nullptr && run.fate != "kept") return "skipped: " + *run.skip;
  if (run.fate == "new") return run.note;
  return run.note.empty() ? std::string(run.fate) : fmt::format("{}: {}", run.fate, run.note);
}

// Runs of one shape have the same texts.
struct ShapeTexts {
  std::string parameters, memory, steps;
};

struct PlanColumn {
  const char* title;
  int importance;  // those of 0 are left out first
  bool right = true;
  std::string (*text)(const PlannedRun& run, const ShapeTexts& shape);
};

const std::array<PlanColumn, 6> kColumns = {{
    {"device", 3, false, [](const PlannedRun& run, const ShapeTexts&) { return run.device; }},
    {"parameters", 1, true, [](const PlannedRun&, const ShapeTexts& shape) { return shape.parameters; }},
    {"steps/epoch", 0, true, [](const PlannedRun&, const ShapeTexts& shape) { return shape.steps; }},
    {"memory", 4, true, [](const PlannedRun&, const ShapeTexts& shape) { return shape.memory; }},
    {"disk", 2, true,
     [](const PlannedRun& run, const ShapeTexts&) {
       return run.trains() ? bytes_text(run.disk_bytes()) : std::string("-");
     }},
    {"time", 5, true,
     [](const PlannedRun& run, const ShapeTexts&) {
       const std::optional<double> seconds = run.seconds();
       return run.trains() && seconds ? seconds_text(*seconds) : std::string("-");
     }},
}};

class PlanTable {
 public:
  PlanTable(const SweepPlan& plan, int width, bool unicode) : plan_(plan), width_(width), unicode_(unicode) {
    const bool timed = std::any_of(plan.runs.begin(), plan.runs.end(), [](const PlannedRun& run) {
      return run.trains() && run.cost->times.has_value();
    });
    for (const PlanColumn& column : kColumns) {
      if (timed || column.title != std::string_view("time")) columns_.push_back({&column, 0});
    }
    measure();
    choose();
  }

  std::string text() {
    std::string text;
    const bool has_notes = std::any_of(plan_.runs.begin(), plan_.runs.end(),
                                       [](const PlannedRun& run) { return !note_of(run).empty(); });
    append_line(
        text, "run", [](const Column& column) { return std::string(column.column->title); },
        has_notes ? "note" : "");
    for (const PlannedRun& run : plan_.runs) {
      const ShapeTexts& shape = texts_of(run);
      append_line(
          text, run.config->name, [&](const Column& column) { return column.column->text(run, shape); },
          note_of(run));
    }
    return text;
  }

  /// "steps/epoch, parameters"; "" if every column is there.
  const std::string& left_out() const { return left_out_; }

 private:
  struct Column {
    const PlanColumn* column;
    std::size_t width;
  };

  const ShapeTexts& texts_of(const PlannedRun& run) {
    ShapeTexts& texts = shapes_[run.cost.get()];
    if (texts.steps.empty()) {
      texts = {std::to_string(run.cost->parameter_count),
               run.cost->memory ? bytes_text(run.cost->memory->total()) : "-",
               std::to_string(run.cost->steps_per_epoch)};
    }
    return texts;
  }

  void measure() {
    for (Column& column : columns_) column.width = std::string_view(column.column->title).size();
    for (const PlannedRun& run : plan_.runs) {
      const ShapeTexts& shape = texts_of(run);
      name_width_ = std::max(name_width_, run.config->name.size());
      for (Column& column : columns_)
        column.width = std::max(column.width, column.column->text(run, shape).size());
    }
  }

  // Leaves out columns until names have room: their ends tell runs apart. Then cuts names.
  void choose() {
    if (width_ <= 0) return;
    const auto columns_width = [&] {
      std::size_t sum = 0;
      for (const Column& column : columns_) sum += 2 + column.width;
      return sum;
    };
    const auto width = static_cast<std::size_t>(width_);
    while (columns_.size() > 1 && name_width_ + columns_width() > width) {
      const auto least = std::min_element(
          columns_.begin(), columns_.end(),
          [](const Column& a, const Column& b) { return a.column->importance < b.column->importance; });
      left_out_ += (left_out_.empty() ? "" : ", ") + std::string(least->column->title);
      columns_.erase(least);
    }
    const std::size_t rest = columns_width();
    if (name_width_ + rest > width) name_width_ = std::max<std::size_t>(8, width > rest ? width - rest : 0);
  }

  template <typename TextOf>
  void append_line(std::string& text, const std::string& name, const TextOf& text_of,
                   const std::string& note) {
    line_ = name.size() <= name_width_ ? name : fit_width(name, static_cast<int>(name_width_), unicode_);
    line_.append(name.size() <= name_width_ ? name_width_ - name.size() : 0, ' ');
    for (const Column& column : columns_) {
      const std::string cell = text_of(column);
      const std::size_t blanks = column.width - cell.size();
      line_ += "  ";
      if (column.column->right) line_.append(blanks, ' ');
      line_ += cell;
      if (!column.column->right) line_.append(blanks, ' ');
    }
    line_ += "  ";
    line_ += note;
    line_.erase(line_.find_last_not_of(' ') + 1);
    text += width_ > 0 ? fit_width(line_, width_, unicode_) : line_;
    text += '\n';
  }

  const SweepPlan& plan_;
  const int width_;
  const bool unicode_;
  std::vector<Column> columns_;
  std::size_t name_width_ = 3;
  std::string left_out_, line_;
  std::unordered_map<const RunCost*, ShapeTexts> shapes_;
};

// "3 kept, 1 continued, 2 new": nothing if all are new.
std::string fates_text(const SweepPlan& plan) {
  std::string text;
  for (const char* fate : {"kept", "continued", "new", "replaced", "pruned", "in the way"}) {
    const auto count = std::count_if(plan.runs.begin(), plan.runs.end(),
                                     [&](const PlannedRun& run) { return run.fate == fate; });
    if (count == static_cast<std::ptrdiff_t>(plan.runs.size()) && std::string_view(fate) == "new") return "";
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, fate);
  }
  return text;
}

// What a search makes of the runs: the costs below are those of all that are listed, to their last epochs.
std::string search_text(const Sweep& sweep) {
  if (!sweep.search || sweep.runs.empty()) return "";
  const SearchSpec& search = *sweep.search;
  if (search.method == SearchMethod::kTpe) {
    return fmt::format("search: the first {} of at most {} trials; results choose the others\n",
                       sweep.runs.size(), search.trials);
  }
  if (!has_rungs(search.method)) return "search: begins no trial once it has found enough\n";
  const int epochs = sweep.runs.front().epochs;
  std::size_t trained = 0;
  for (const HyperbandBracket& bracket : search_brackets(search, sweep.runs.size(), epochs))
    trained += bracket.halving.total_epochs();
  return fmt::format("search: ends the worse trials early, which leaves {} of {} epochs\n", trained,
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
  const bool unknown = std::any_of(plan.runs.begin(), plan.runs.end(),
                                   [](const PlannedRun& run) { return run.trains() && !run.cost->memory; });
  if (unknown) text += "memory of GPUs is not estimated\n";
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

Json params_json(const Params& params) {
  Json json = Json::object();
  for (const auto& param : params)
    std::visit([&](const auto& value) { json[param.first] = value; }, param.second);
  return json;
}

Json run_json(const PlannedRun& run) {
  const RunCost& cost = *run.cost;
  Json json = {{"name", run.config->name},
               {"params", params_json(run.config->params)},
               {"device", run.device},
               {"skip", run.skip != nullptr ? Json(*run.skip) : Json()},
               {"fate", run.fate}};
  if (!run.note.empty()) json["note"] = run.note;
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
  return {{"name", run_name(run.params)}, {"params", params_json(run.params)}, {"reason", run.reason}};
}

// Writes the list one element after the other: there may be 100,000 of them.
template <typename Element>
void write_list(const std::vector<Element>& list, Json (*json_of)(const Element&), std::ostream& out) {
  const char* before = "[\n    ";
  for (const Element& element : list) {
    std::string text = json_of(element).dump(2, ' ', false, Json::error_handler_t::replace);
    for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; ++at)
      text.insert(at + 1, 4, ' ');
    out << before << text;
    before = ",\n    ";
  }
  out << (list.empty() ? "[]" : "\n  ]");
}

}  // namespace

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string plan_text(const SweepPlan& plan, int width, bool unicode) {
  PlanTable table(plan, width, unicode);
  std::string text = table.text();
  for (const ExcludedRun& run : plan.sweep->excluded)
    text += fmt::format("left out: {} ({})\n", run_name(run.params), run.reason);
  text += fmt::format("{}: {} run{}", plan.sweep->name, plan.runs.size(), plan.runs.size() == 1 ? "" : "s");
  if (const std::string fates = fates_text(plan); !fates.empty()) text += ": " + fates;
  const auto skipped = std::count_if(plan.runs.begin(), plan.runs.end(), [](const PlannedRun& run) {
    return run.skip != nullptr && run.fate != "kept";
  });
  if (skipped > 0) text += fmt::format(", {} of them skipped", skipped);
  if (!plan.sweep->excluded.empty()) text += fmt::format(", {} left out", plan.sweep->excluded.size());
  text += "\n" + search_text(*plan.sweep) + costs_text(plan);
  if (width > 0) {  // The notes in the table may be cut.
    std::set<std::string> reasons;
    for (const PlannedRun& run : plan.runs) {
      if (run.skip != nullptr && run.fate != "kept") reasons.insert(*run.skip);
    }
    for (const std::string& reason : reasons) text += "skipped: " + reason + "\n";
  }
  if (!table.left_out().empty()) text += fmt::format("not shown for lack of width: {}\n", table.left_out());
  return text;
}

void write_plan_json(const SweepPlan& plan, std::ostream& out) {
  const Json totals = {{"jobs", plan.jobs},
                       {"threads", plan.threads},
                       {"memory_bytes", or_null(plan.memory_bytes())},
                       {"disk_bytes", plan.disk_bytes()},
                       {"disk_free_bytes", or_null(plan.disk_free)},
                       {"seconds", or_null(plan.seconds())}};
  out << "{\n  \"sweep\": " << compact_json_text(plan.sweep->name) << ",\n  \"runs\": ";
  write_list(plan.runs, run_json, out);
  out << ",\n  \"excluded\": ";
  write_list(plan.sweep->excluded, excluded_json, out);
  out << "," << json_text(totals).substr(1);
}

}  // namespace sweep
