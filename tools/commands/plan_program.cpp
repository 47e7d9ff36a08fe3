// `sweep plan` for a sweep of a person's own program.
#include <fmt/format.h>

#include <vector>

#include "core/base/printable.h"
#include "core/base/text.h"
#include "core/engine/engine.h"
#include "runmanager/kinds/command/command_kind.h"
#include "runmanager/kinds/command/command_words.h"
#include "runmanager/plan/plan.h"
#include "runmanager/records/provenance.h"
#include "runmanager/records/run_record_json.h"
#include "tools/command_line.h"
#include "tools/commands/plan.h"
#include "tools/output.h"

namespace sweep {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

int print_program_plan(const Sweep& sweep, const PlanOptions& options) {
  if (!options.is_dry_run)
    refuse_given(
        {{"--pilot", options.pilot}, {"--jobs", options.jobs != 1}, {"--threads", options.threads > 0}},
        "is for networks; what a program takes is not known", sweep.file.string());
  const fs::path logdir = logdir_of(options.sweep);
  CommandKind kind(Json::object(), unavailable_reason);
  kind.load(sweep);
  kind.check(sweep);
  const fs::path directory = fs::absolute(logdir / sweep.name);
  std::error_code error;
  const std::vector<ExistingRun> existing =
      options.fresh || (!fs::exists(directory, error) && !error)
          ? std::vector<ExistingRun>(sweep.runs.size())
          : find_existing_runs(directory, sweep.runs, kind.identities(), options.retry_failed);
  Json list = Json::array();
  TextTable table({"run", "note", "command"}, 3);
  std::string text;
  for (std::size_t i = 0; i < sweep.runs.size(); ++i) {
    const RunConfig& run = sweep.runs[i];
    const std::vector<std::string> words =
        command_words({.config = run, .run_directory = directory / run.name});
    const std::string fate(fate_text(sweep, existing[i], options.replace));
    const std::string note = note_of(existing[i], run);
    list.push_back({{"name", run.name}, {"params", to_json(run.params)}, {"fate", fate}});
    if (!note.empty()) list.back()["note"] = note;
    list.back()["command"] = words;
    table.rows.push_back({run.name, note.empty() ? fate : fate + ": " + note, shell_command(words)});
    text += fmt::format("{:<10} {}\n", fate, run.name);
    for (const std::string& line : {note, shell_command(words)})
      if (!line.empty()) text += fmt::format("{:10} {}\n", "", line);
  }
  Json excluded = Json::array();
  for (const ExcludedRun& run : sweep.excluded) excluded.push_back(excluded_json(run));
  text += excluded_text(sweep) +
          fmt::format("{} in {}\n", counted(sweep.runs.size(), "run"), (logdir / sweep.name).string()) +
          search_text(sweep);
  Json plan = {{"sweep", sweep.name}, {"runs", std::move(list)}, {"excluded", std::move(excluded)}};
  const GpuPool gpus = kind.gpus(sweep);
  if (const auto max_runs = gpus.max_runs()) {
    const CommandSpec& spec = *sweep.runs.front().command;
    plan["gpus"] = {{"per_run", spec.gpus}, {"runs_per_gpu", spec.runs_per_gpu}, {"here", gpus.gpus()}};
    text += gpus.problem().value_or(fmt::format("{} of the GPUs {} per run: up to {} at once", spec.gpus,
                                                fmt::join(gpus.gpus(), ", "), *max_runs)) +
            "\n";
  }
  print_as(
      options.format, [&] { return plan; }, [&] { return printable(text); },
      [&] { return std::vector{table}; });
  if (!options.replace) refuse_runs_in_the_way(directory, sweep.runs, existing);
  return kExitDone;
}

}  // namespace sweep
