// The keys of "slurm" with the rules for their values, and what they say.
#include "runmanager/sweepfile/slurm/slurm_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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

using namespace rows;  // NOLINT(google-build-using-namespace): the table is of nothing but rows.

namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxTasks = 100000;

bool has_control_characters(std::string_view text) {
  return std::ranges::any_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7F;
  });
}

bool is_line(const std::string& text) { return !text.empty() && !has_control_characters(text); }
// A word that becomes part of an argument of sbatch.
bool is_word(const std::string& text) { return is_line(text) && text.find(' ') == std::string::npos; }

bool is_memory(const std::string& text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::string_view unit = std::string_view(text).substr(digits);
  return digits >= 1 && digits <= 9 && unit.size() <= 1 &&
         std::string_view("KMGT").find(unit) != std::string_view::npos;
}

constexpr const char *kWordPattern = R"(^[^\u0000-\u0020\u007f]+$)",
                     *kLinePattern = R"(^[^\u0000-\u001f\u007f]+$)";

constexpr TextRule kWord = {"a string without spaces, as sbatch takes it", is_word, kWordPattern};
constexpr TextRule kTime = {R"(a time as sbatch takes it: "30" (minutes), "4:00:00" or "1-12:00:00")",
                            [](const std::string& text) { return is_word(text) && slurm_minutes(text) >= 0; },
                            R"(^(UNLIMITED|INFINITE|[0-9]+(:[0-9]+){0,2}|[0-9]+-[0-9]+(:[0-9]+){0,2})$)"};
constexpr TextRule kMemory = {R"(memory as sbatch takes it: "800M" or "16G")", is_memory,
                              "^[0-9]{1,9}[KMGT]?$"};
constexpr TextRule kGres = {R"(resources as sbatch takes them: "gpu:1" or "gpu:a100:2")",
                            [](const std::string& text) {
                              return is_word(text) && text.find("::") == std::string::npos &&
                                     text.front() != ':' && text.back() != ':' &&
                                     text.find('=') == std::string::npos;
                            },
                            kWordPattern};
constexpr TextRule kProgram = {"the absolute path of the program on the nodes, or its name in PATH",
                               [](const std::string& text) {
                                 return is_line(text) &&
                                        (text.front() == '/' || text.find('/') == std::string::npos);
                               },
                               kLinePattern};

constexpr TextRule kLine = {"a line of shell", is_line, kLinePattern},
                   kLines = {"a line of shell, or a list of such lines", is_line, kLinePattern};

// Options of sbatch that the program sets itself, or that would change what its answer means.
constexpr std::array kOwnOptions = {
    "--array",     "--chdir",   "--comment", "--dependency", "--job-name", "--no-requeue",
    "--open-mode", "--output",  "--error",   "--parsable",   "--requeue",  "--signal",
    "--test-only", "--wait",    "--wrap",    "--hold",       "--quiet",    "--verbose",
    "--help",      "--version", "--usage",   "--nodes",      "--ntasks",   "--kill-on-invalid-dep",
    "-a",          "-D",        "-d",        "-J",           "-o",         "-e",
    "-W",          "-H",        "-Q",        "-v",           "-h",         "-V",
    "-N",          "-n"};

bool check_option(const JsonView& option, Problems& problems) {
  const std::string& text = option.text();
  const std::string name = text.starts_with("--") ? text.substr(0, text.find('=')) : text.substr(0, 2);
  if (!text.starts_with('-') || !is_line(text)) {
    problems.add_value(option, R"(an option of sbatch with its value in one word: "--nice=10")");
    return false;
  }
  if (std::ranges::find(kOwnOptions, name) == kOwnOptions.end()) return true;
  problems.add(option, fmt::format("{} is set by the program itself", name));
  return false;
}

Setting option() {
  Setting row = custom("", {{"type", "string"}, {"pattern", kLinePattern}}, "");
  row.check = check_option;
  return row;
}

// A list of values to try is no hint for these.
std::vector<Setting> not_swept(std::vector<Setting> keys) {
  for (Setting& key : keys) key.sweepable = false;
  return keys;
}

// What one task asks for.
std::vector<Setting> task_keys() {
  return {
      text("partition", kWord, "sbatch --partition"),
      text("account", kWord, "sbatch --account"),
      text("qos", kWord, "sbatch --qos"),
      text("reservation", kWord, "sbatch --reservation"),
      text("time", kTime, "sbatch --time: the limit of each task; a run that reaches it goes on in the next"),
      text("memory", kMemory, "sbatch --mem: of each task"),
      text("gres", kGres,
           "sbatch --gres of tasks whose runs train on CUDA, gpu:1 by default; of others within \"cpu\""),
      text("constraint", kWord, "sbatch --constraint: features that nodes must have"),
      text("exclude", kWord, "sbatch --exclude: nodes that are not used"),
      integer("cpus", 0, 4096, 0,
              "sbatch --cpus-per-task, and so the threads of a run; 0: what the cluster gives"),
      list("options", R"(a list of options of sbatch: ["--exclusive", "--mail-type=END"])", option(), {},
           "further options of sbatch, each one word"),
      or_alone(list("setup", kLines.allowed, text("", kLine, ""), {},
                    "lines of shell before the program; one that fails ends the task"),
               text("", kLines, ""))};
}

Setting task_object(const std::string& name, std::string help) {
  Setting row = object(name, std::move(help), not_swept(task_keys()));
  row.definition = "slurm_tasks";
  return row;
}

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

Setting rows::slurm() {
  const SlurmSpec defaults;
  std::vector<Setting> keys = task_keys();
  const auto more = {
      integer("tasks", 1, kMaxTasks, defaults.tasks,
              "most tasks at once, for runs on the CPU and on CUDA each"),
      integer("runs_per_task", 0, kMaxTasks, defaults.runs_per_task,
              "runs of a task; 0: as many as make four tasks for each at once"),
      integer("max_restarts", 0, kMaxTasks, defaults.max_restarts,
              "how often a task starts again after a preemption, its time limit or a lost node"),
      integer("warning_seconds", 30, 86400, defaults.warning_seconds,
              "before its time limit a run writes its checkpoint and makes room"),
      boolean("report", defaults.report,
              "whether a job after all others writes the report and tells what is not done"),
      text("program", kProgram, "the program as the nodes have it; default: this one"),
      task_object("cpu", "what only tasks whose runs train on the CPU ask for"),
      task_object("cuda", "what only tasks whose runs train on CUDA ask for")};
  keys.insert(keys.end(), more);
  return object("slurm", "what the sweep requests from a cluster, for --launcher slurm",
                not_swept(std::move(keys)))
      .not_swept();
}

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
