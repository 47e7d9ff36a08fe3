#include "runmanager/sweepfile/slurm/slurm_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "core/base/text.h"
#include "runmanager/sweepfile/settings/settings.h"

namespace sweep {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(SlurmTasks, partition, account, qos, reservation, time,
                                                memory, gres, constraint, exclude, cpus, options, setup)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(SlurmSpec, tasks, runs_per_task, max_restarts,
                                                warning_seconds, report)

namespace {

using Json = nlohmann::ordered_json;

constexpr int kSecondsPerMinute = 60;
// The controller looks for jobs at their limit every half a minute, so that a warning may come that much
// late.
constexpr int kSlackSeconds = 30;

const Setting& slurm_row() { return *find_setting(top_level_settings(), "slurm"); }

// What tasks of the kind `key`, "cpu" or "cuda", ask for: the keys of "slurm", `complete`, and over them
// those of its object `key`. GPUs are for runs on CUDA, unless it says otherwise.
SlurmTasks tasks_of(const JsonView& slurm, const Json& complete, const std::string& key) {
  Json tasks = Json::object();
  for (const Setting& row : find_setting(slurm_row().table(), key)->table()) {
    const bool is_own = static_cast<bool>(slurm.find(key).find(row.name));
    const Json& asked = is_own ? complete.at(key) : complete;
    const bool is_left_out = !is_own && key == "cpu" && row.name == "gres";
    if (!is_left_out && asked.contains(row.name)) tasks[row.name] = asked.at(row.name);
  }
  return tasks.get<SlurmTasks>();
}

// The task has to be warned before its end, and to have some time before the warning.
void check_time(const JsonView& object, const std::string& time, int warning_seconds, Problems& problems) {
  const long minutes = slurm_minutes(time);
  if (time.empty() || minutes <= 0 || minutes * kSecondsPerMinute >= warning_seconds + kSlackSeconds) return;
  const JsonView node = object.find("time");
  problems.add(node ? node : object,
               fmt::format("\"{}\" is {}, want more than the {} s of \"warning_seconds\", in which a "
                           "run writes its checkpoint; hours are written as \"4:00:00\"",
                           time, counted(static_cast<std::size_t>(minutes), "minute"), warning_seconds));
}

}  // namespace

SlurmSpec read_slurm(const JsonView& root, Problems& problems) {
  SlurmSpec spec;
  const JsonView node = root.find("slurm");
  if (!node) return spec;
  const Json json = complete_object(node, slurm_row().table(), {}, problems);
  json.get_to(spec);
  spec.program = json.value("program", "");
  for (const auto& [key, tasks] : {std::pair("cpu", &spec.cpu), std::pair("cuda", &spec.cuda)}) {
    *tasks = tasks_of(node, json, key);
    const JsonView own = node.find(key);
    check_time(own.find("time") ? own : node, tasks->time, spec.warning_seconds, problems);
  }
  return spec;
}

SlurmSpec slurm_spec(const Sweep& sweep) {
  Problems problems;
  SlurmSpec spec = read_slurm(document_of(sweep.resolved, "sweep.json"), problems);
  problems.throw_if_any();  // None, since load_sweep() has found none.
  return spec;
}

}  // namespace sweep
