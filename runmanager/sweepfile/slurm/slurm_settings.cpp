// The keys of "slurm" in tables, with the rules for their values.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "runmanager/sweepfile/settings/setting_rows.h"
#include "runmanager/sweepfile/slurm/slurm_reader.h"

namespace sweep {

using namespace rows;  // NOLINT(google-build-using-namespace): tables of nothing but rows.

namespace {

using Json = nlohmann::ordered_json;
using Check = bool (*)(const JsonNode& node, Problems& problems);

constexpr int kMaxTasks = 100000;

bool has_control_characters(std::string_view text) {
  return std::ranges::any_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7F;
  });
}

// A word that becomes part of an argument of sbatch.
bool is_word(const JsonNode& node) {
  return node.is(JsonKind::kString) && !node.text.empty() && !has_control_characters(node.text) &&
         node.text.find(' ') == std::string::npos;
}

bool refuse(const JsonNode& node, std::string_view allowed, Problems& problems) {
  problems.add_value(node, allowed);
  return false;
}

constexpr const char* kWordPattern = R"(^[^\u0000-\u0020\u007f]+$)";
constexpr const char* kLinePattern = R"(^[^\u0000-\u001f\u007f]+$)";
constexpr const char* kWord = "a string without spaces, as sbatch takes it";

bool check_word(const JsonNode& node, Problems& problems) {
  return is_word(node) || refuse(node, kWord, problems);
}

constexpr const char* kTimePattern =
    R"(^(UNLIMITED|INFINITE|[0-9]+(:[0-9]+){0,2}|[0-9]+-[0-9]+(:[0-9]+){0,2})$)";
constexpr const char* kTime = R"(a time as sbatch takes it: "30" (minutes), "4:00:00" or "1-12:00:00")";

bool check_time(const JsonNode& node, Problems& problems) {
  return (is_word(node) && slurm_minutes(node.text) >= 0) || refuse(node, kTime, problems);
}

constexpr const char* kMemoryPattern = "^[0-9]{1,9}[KMGT]?$";
constexpr const char* kMemory = R"(memory as sbatch takes it: "800M" or "16G")";

bool check_memory(const JsonNode& node, Problems& problems) {
  if (!is_word(node)) return refuse(node, kMemory, problems);
  std::string_view digits = node.text;
  if (std::string_view("KMGT").find(digits.back()) != std::string_view::npos) digits.remove_suffix(1);
  const bool good = !digits.empty() && digits.size() <= 9 &&
                    digits.find_first_not_of("0123456789") == std::string_view::npos;
  return good || refuse(node, kMemory, problems);
}

constexpr const char* kGres = R"(resources as sbatch takes them: "gpu:1" or "gpu:a100:2")";

bool check_gres(const JsonNode& node, Problems& problems) {
  const bool good = is_word(node) && node.text.find("::") == std::string::npos && node.text.front() != ':' &&
                    node.text.back() != ':' && node.text.find('=') == std::string::npos;
  return good || refuse(node, kGres, problems);
}

bool check_program(const JsonNode& node, Problems& problems) {
  const bool good = node.is(JsonKind::kString) && !node.text.empty() && !has_control_characters(node.text) &&
                    (node.text.front() == '/' || node.text.find('/') == std::string::npos);
  return good || refuse(node, "the absolute path of the program on the nodes, or its name in PATH", problems);
}

constexpr const char* kSetup = "a line of shell, or a list of such lines";

bool check_setup(const JsonNode& node, Problems& problems) {
  const auto is_line = [](const JsonNode& line) {
    return line.is(JsonKind::kString) && !line.text.empty() && !has_control_characters(line.text);
  };
  if (is_line(node)) return true;
  if (!node.is(JsonKind::kArray)) return refuse(node, kSetup, problems);
  for (const JsonNode& line : node.elements) {
    if (!is_line(line)) return refuse(line, "a line of shell", problems);
  }
  return true;
}

// One line becomes a list of one.
Json complete_setup(const Given& given) {
  if (given.value == nullptr || !check_setup(*given.value, given.problems)) return nullptr;
  return given.value->is(JsonKind::kString) ? Json::array({given.value->text}) : to_json(*given.value);
}

// Options of sbatch that the program sets itself, or that would change what its answer means.
constexpr std::array kOwnOptions = {
    "--array",     "--chdir",   "--comment", "--dependency", "--job-name", "--no-requeue",
    "--open-mode", "--output",  "--error",   "--parsable",   "--requeue",  "--signal",
    "--test-only", "--wait",    "--wrap",    "--hold",       "--quiet",    "--verbose",
    "--help",      "--version", "--usage",   "--nodes",      "--ntasks",   "--kill-on-invalid-dep",
    "-a",          "-D",        "-d",        "-J",           "-o",         "-e",
    "-W",          "-H",        "-Q",        "-v",           "-h",         "-V",
    "-N",          "-n"};

constexpr const char* kOptions = R"(a list of options of sbatch: ["--exclusive", "--mail-type=END"])";

bool check_options(const JsonNode& node, Problems& problems) {
  if (!node.is(JsonKind::kArray)) return refuse(node, kOptions, problems);
  bool all_good = true;
  for (const JsonNode& option : node.elements) {
    const bool is_option =
        option.is(JsonKind::kString) && option.text.starts_with('-') && !has_control_characters(option.text);
    const std::string name = option.text.starts_with("--") ? option.text.substr(0, option.text.find('='))
                                                           : option.text.substr(0, 2);
    if (!is_option) {
      all_good = refuse(option, R"(an option of sbatch with its value in one word: "--nice=10")", problems);
    } else if (std::ranges::find(kOwnOptions, name) != kOwnOptions.end()) {
      problems.add(*option.location, fmt::format("{} is set by the program itself", name));
      all_good = false;
    }
  }
  return all_good;
}

// A string, also where it reads like a number.
Setting text(std::string name, std::string help, std::string allowed, Check check,
             const char* pattern = kWordPattern) {
  Setting setting = custom(
      std::move(name), std::move(help), false,
      {.allowed = std::move(allowed), .schema = {{"type", "string"}, {"pattern", pattern}}, .check = check});
  setting.kind = ArgumentKind::kPath;
  return setting;
}

Setting lines(std::string name, std::string help, std::string allowed, Check check) {
  return custom(std::move(name), std::move(help), false,
                {.allowed = std::move(allowed),
                 .schema = list_of({{"type", "string"}, {"pattern", kLinePattern}}),
                 .check = check});
}

Setting task_object(std::string name, std::string help) {
  return custom(std::move(name), std::move(help), false,
                {.schema = definition("slurm_tasks"), .settings = slurm_task_settings});
}

}  // namespace

std::span<const Setting> slurm_task_settings() {
  static const std::vector<Setting> settings = [] {
    Setting setup = lines("setup", "lines of shell before the program; one that fails ends the task", kSetup,
                          check_setup);
    setup.format->schema = {
        {"anyOf", Json::array({Json{{"type", "string"}, {"pattern", kLinePattern}}, setup.format->schema})}};
    return std::vector<Setting>{
        text("partition", "sbatch --partition", kWord, check_word),
        text("account", "sbatch --account", kWord, check_word),
        text("qos", "sbatch --qos", kWord, check_word),
        text("reservation", "sbatch --reservation", kWord, check_word),
        text("time", "sbatch --time: the limit of each task; a run that reaches it goes on in the next",
             kTime, check_time, kTimePattern),
        text("memory", "sbatch --mem: of each task", kMemory, check_memory, kMemoryPattern),
        text("gres",
             "sbatch --gres of tasks whose runs train on CUDA, gpu:1 by default; of others within \"cpu\"",
             kGres, check_gres),
        text("constraint", "sbatch --constraint: features that nodes must have", kWord, check_word),
        text("exclude", "sbatch --exclude: nodes that are not used", kWord, check_word),
        integer("cpus", 0, 4096, 0,
                "sbatch --cpus-per-task, and so the threads of a run; 0: what the cluster gives", false),
        lines("options", "further options of sbatch, each one word", kOptions, check_options),
        std::move(setup).completed_by(complete_setup)};
  }();
  return settings;
}

std::span<const Setting> slurm_settings() {
  static const std::vector<Setting> settings = [] {
    const SlurmSpec defaults;
    Setting report = boolean("report", defaults.report,
                             "whether a job after all others writes the report and tells what is not done");
    report.sweepable = false;
    const std::span<const Setting> tasks = slurm_task_settings();
    std::vector<Setting> all(tasks.begin(), tasks.end());
    all.push_back(integer("tasks", 1, kMaxTasks, defaults.tasks,
                          "most tasks at once, for runs on the CPU and on CUDA each", false));
    all.push_back(integer("runs_per_task", 0, kMaxTasks, defaults.runs_per_task,
                          "runs of a task; 0: as many as make four tasks for each at once", false));
    all.push_back(integer("max_restarts", 0, kMaxTasks, defaults.max_restarts,
                          "how often a task starts again after a preemption, its time limit or a lost node",
                          false));
    all.push_back(integer("warning_seconds", 30, 86400, defaults.warning_seconds,
                          "before its time limit a run writes its checkpoint and makes room", false));
    all.push_back(std::move(report));
    all.push_back(text("program", "the program as the nodes have it; default: this one",
                       "the absolute path of the program on the nodes, or its name in PATH", check_program,
                       kLinePattern));
    all.push_back(task_object("cpu", "what only tasks whose runs train on the CPU ask for"));
    all.push_back(task_object("cuda", "what only tasks whose runs train on CUDA ask for"));
    return all;
  }();
  return settings;
}

}  // namespace sweep
