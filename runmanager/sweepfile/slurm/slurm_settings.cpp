// The keys of "slurm" in tables, with the rules for their values.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <regex>
#include <string_view>

#include "runmanager/sweepfile/settings/setting_rows.h"
#include "runmanager/sweepfile/slurm/slurm_reader.h"

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

// A string, also where it reads like a number.
struct TextForm {
  const char* allowed;
  bool (*is_good)(const std::string& text);
  const char* pattern;  // of the schema
};

constexpr const char *kWordPattern = R"(^[^\u0000-\u0020\u007f]+$)",
                     *kLinePattern = R"(^[^\u0000-\u001f\u007f]+$)";

constexpr TextForm kWord = {"a string without spaces, as sbatch takes it", is_word, kWordPattern};
constexpr TextForm kTime = {R"(a time as sbatch takes it: "30" (minutes), "4:00:00" or "1-12:00:00")",
                            [](const std::string& text) { return is_word(text) && slurm_minutes(text) >= 0; },
                            R"(^(UNLIMITED|INFINITE|[0-9]+(:[0-9]+){0,2}|[0-9]+-[0-9]+(:[0-9]+){0,2})$)"};
constexpr TextForm kMemory = {R"(memory as sbatch takes it: "800M" or "16G")",
                              [](const std::string& text) {
                                static const std::regex pattern("[0-9]{1,9}[KMGT]?");
                                return std::regex_match(text, pattern);
                              },
                              "^[0-9]{1,9}[KMGT]?$"};
constexpr TextForm kGres = {R"(resources as sbatch takes them: "gpu:1" or "gpu:a100:2")",
                            [](const std::string& text) {
                              return is_word(text) && text.find("::") == std::string::npos &&
                                     text.front() != ':' && text.back() != ':' &&
                                     text.find('=') == std::string::npos;
                            },
                            kWordPattern};
constexpr TextForm kProgram = {"the absolute path of the program on the nodes, or its name in PATH",
                               [](const std::string& text) {
                                 return is_line(text) &&
                                        (text.front() == '/' || text.find('/') == std::string::npos);
                               },
                               kLinePattern};

bool refuse(const JsonView& value, std::string_view allowed, Problems& problems) {
  problems.add_value(value, allowed);
  return false;
}

template <const TextForm& kForm>
bool check_text(const JsonView& value, Problems& problems) {
  return kForm.is_good(value.text()) || refuse(value, kForm.allowed, problems);
}

constexpr const char* kSetup = "a line of shell, or a list of such lines";

bool check_setup(const JsonView& value, Problems& problems) {
  if (is_line(value.text())) return true;
  if (!value->is_array()) return refuse(value, kSetup, problems);
  for (const JsonView& line : value.children()) {
    if (!is_line(line.text())) return refuse(line, "a line of shell", problems);
  }
  return true;
}

// One line becomes a list of one.
Json complete_setup(const Setting&, const Given& given) {
  if (!given.value || !check_setup(given.value, given.problems)) return nullptr;
  return given.value->is_string() ? Json::array({given.value.text()}) : *given.value;
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

bool check_options(const JsonView& value, Problems& problems) {
  if (!value->is_array()) return refuse(value, kOptions, problems);
  bool all_good = true;
  for (const JsonView& option : value.children()) {
    const std::string& text = option.text();
    const std::string name = text.starts_with("--") ? text.substr(0, text.find('=')) : text.substr(0, 2);
    if (!text.starts_with('-') || !is_line(text)) {
      all_good = refuse(option, R"(an option of sbatch with its value in one word: "--nice=10")", problems);
    } else if (std::ranges::find(kOwnOptions, name) != kOwnOptions.end()) {
      problems.add(option, fmt::format("{} is set by the program itself", name));
      all_good = false;
    }
  }
  return all_good;
}

template <const TextForm& kForm>
Setting text(std::string name, std::string help) {
  Setting setting = custom(std::move(name), std::move(help), false,
                           {.allowed = kForm.allowed,
                            .schema = {{"type", "string"}, {"pattern", kForm.pattern}},
                            .check = check_text<kForm>});
  setting.kind = ArgumentKind::kPath;
  return setting;
}

Setting lines(std::string name, std::string help, std::string allowed, decltype(SettingFormat::check) check) {
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
        text<kWord>("partition", "sbatch --partition"),
        text<kWord>("account", "sbatch --account"),
        text<kWord>("qos", "sbatch --qos"),
        text<kWord>("reservation", "sbatch --reservation"),
        text<kTime>("time",
                    "sbatch --time: the limit of each task; a run that reaches it goes on in the next"),
        text<kMemory>("memory", "sbatch --mem: of each task"),
        text<kGres>(
            "gres",
            "sbatch --gres of tasks whose runs train on CUDA, gpu:1 by default; of others within \"cpu\""),
        text<kWord>("constraint", "sbatch --constraint: features that nodes must have"),
        text<kWord>("exclude", "sbatch --exclude: nodes that are not used"),
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
    all.push_back(text<kProgram>("program", "the program as the nodes have it; default: this one"));
    all.push_back(task_object("cpu", "what only tasks whose runs train on the CPU ask for"));
    all.push_back(task_object("cuda", "what only tasks whose runs train on CUDA ask for"));
    return all;
  }();
  return settings;
}

}  // namespace sweep
