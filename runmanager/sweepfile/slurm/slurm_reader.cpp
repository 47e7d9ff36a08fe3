#include "runmanager/sweepfile/slurm/slurm_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSecondsPerMinute = 60;
// The controller looks for jobs at their limit every half a minute, so that a warning may come that much
// late.
constexpr int kSlackSeconds = 30;

// What tasks of the kind `key`, "cpu" or "cuda", ask for: the keys of "slurm", and over them those of its
// object `key`. GPUs are for runs on CUDA, where it does not say so itself.
SlurmTasks tasks_of(const JsonNode& slurm, const std::string& key, Problems& problems) {
  JsonNode asked = slurm;
  std::erase_if(asked.members, [&](const JsonMember& member) {
    return find_setting(slurm_task_settings(), member.key) == nullptr ||
           (key == "cpu" && member.key == "gres");
  });
  if (const JsonNode* own = slurm.find(key)) {
    for (const JsonMember& member : own->members) {
      std::erase_if(asked.members, [&](const JsonMember& shared) { return shared.key == member.key; });
      asked.members.push_back(member);
    }
  }
  const Json json = complete_object(&asked, slurm_task_settings(), {}, problems);
  return {.partition = json.value("partition", ""),
          .account = json.value("account", ""),
          .qos = json.value("qos", ""),
          .reservation = json.value("reservation", ""),
          .time = json.value("time", ""),
          .memory = json.value("memory", ""),
          .gres = json.value("gres", ""),
          .constraint = json.value("constraint", ""),
          .exclude = json.value("exclude", ""),
          .cpus = json.value("cpus", 0),
          .options = json.value("options", std::vector<std::string>()),
          .setup = json.value("setup", std::vector<std::string>())};
}

// The task has to be warned before its end, and to have some time before the warning.
void check_time(const JsonNode& object, const std::string& time, int warning_seconds, Problems& problems) {
  const long minutes = slurm_minutes(time);
  if (time.empty() || minutes <= 0 || minutes * kSecondsPerMinute >= warning_seconds + kSlackSeconds) return;
  const JsonNode* node = object.find("time");
  problems.add(
      node != nullptr ? *node->location : *object.location,
      fmt::format("\"{}\" is {} minute{}, want more than the {} s of \"warning_seconds\", in which a "
                  "run writes its checkpoint; hours are written as \"4:00:00\"",
                  time, minutes, minutes == 1 ? "" : "s", warning_seconds));
}

}  // namespace

SlurmSpec read_slurm(const JsonNode& root, Problems& problems) {
  SlurmSpec spec;
  const JsonNode* node = root.find("slurm");
  if (node == nullptr) return spec;
  const Json json = complete_object(node, slurm_settings(), {}, problems);
  spec.tasks = json.at("tasks");
  spec.runs_per_task = json.at("runs_per_task");
  spec.max_restarts = json.at("max_restarts");
  spec.warning_seconds = json.at("warning_seconds");
  spec.report = json.at("report");
  spec.program = json.value("program", "");
  for (const auto& [key, tasks] : {std::pair("cpu", &spec.cpu), std::pair("cuda", &spec.cuda)}) {
    *tasks = tasks_of(*node, key, problems);
    const JsonNode* own = node->find(key);
    check_time(own != nullptr && own->find("time") != nullptr ? *own : *node, tasks->time,
               spec.warning_seconds, problems);
  }
  return spec;
}

SlurmSpec slurm_spec(const Sweep& sweep) {
  const auto nowhere = std::make_shared<const JsonLocation>(
      JsonLocation{std::make_shared<const std::string>("sweep.json"), 0, 0, 0, ""});
  Problems problems;
  SlurmSpec spec = read_slurm(from_json(sweep.resolved, nowhere), problems);
  problems.throw_if_any();  // None, since load_sweep() has found none.
  return spec;
}

}  // namespace sweep
