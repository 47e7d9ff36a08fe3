#include "runmanager/sweepfile/slurm/slurm_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
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

constexpr long kMinutesPerHour = 60, kMinutesPerDay = 24 * kMinutesPerHour, kSecondsPerMinute = 60;
constexpr long kLargestNumber = 1000000;  // Far beyond any limit, and no product of it overflows.
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

std::optional<long> count_of(std::string_view text) {
  const std::optional<long> count = number_in<long>(text);
  return count && !text.starts_with('-') && *count <= kLargestNumber ? count : std::nullopt;
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

long slurm_minutes(const std::string& time) {
  if (time == "UNLIMITED" || time == "INFINITE") return 0;
  const std::size_t dash = time.find('-'), start = dash == std::string::npos ? 0 : dash + 1;
  const std::optional<long> days = start > 0 ? count_of(std::string_view(time).substr(0, dash)) : 0;
  std::vector<long> numbers;  // hours, minutes and seconds, in the end
  for (const std::string_view part : split(std::string_view(time).substr(start), ':')) {
    const std::optional<long> number = count_of(part);
    if (!number || numbers.size() == 3) return -1;
    numbers.push_back(*number);
  }
  if (!days || (start == 0 && numbers == std::vector<long>{0})) return -1;
  // Without days, one number is minutes, and two are minutes and seconds.
  if (start == 0 && numbers.size() < 3) numbers.insert(numbers.begin(), 0);
  numbers.resize(3);
  return *days * kMinutesPerDay + numbers[0] * kMinutesPerHour + numbers[1] +
         (numbers[2] + kSecondsPerMinute - 1) / kSecondsPerMinute;
}

int slurm_gpus(const std::string& gres) {
  long gpus = 0;
  for (const std::string_view resource : split(gres, ',')) {
    const std::vector<std::string_view> parts = split(resource, ':');
    const std::string_view name = parts[0].starts_with("gres/") ? parts[0].substr(5) : parts[0];
    if (name == "gpu") gpus += parts.size() == 1 ? 1 : count_of(parts.back()).value_or(1);
  }
  return static_cast<int>(std::min(gpus, kLargestNumber));
}

}  // namespace sweep
