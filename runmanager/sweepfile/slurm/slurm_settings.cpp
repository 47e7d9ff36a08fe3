// The keys of "slurm" in tables, with the rules for their values.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <regex>
#include <string_view>

#include "runmanager/sweepfile/settings/setting_kinds.h"
#include "runmanager/sweepfile/slurm/slurm_spec.h"

namespace sweep {

using namespace rows;  // NOLINT(google-build-using-namespace): tables of nothing but rows.

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

constexpr const char *kWordPattern = R"(^[^\u0000-\u0020\u007f]+$)",
                     *kLinePattern = R"(^[^\u0000-\u001f\u007f]+$)";

constexpr TextRule kWord = {"a string without spaces, as sbatch takes it", is_word, kWordPattern};
constexpr TextRule kTime = {R"(a time as sbatch takes it: "30" (minutes), "4:00:00" or "1-12:00:00")",
                            [](const std::string& text) { return is_word(text) && slurm_minutes(text) >= 0; },
                            R"(^(UNLIMITED|INFINITE|[0-9]+(:[0-9]+){0,2}|[0-9]+-[0-9]+(:[0-9]+){0,2})$)"};
constexpr TextRule kMemory = {R"(memory as sbatch takes it: "800M" or "16G")",
                              [](const std::string& text) {
                                static const std::regex pattern("[0-9]{1,9}[KMGT]?");
                                return std::regex_match(text, pattern);
                              },
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

}  // namespace sweep
