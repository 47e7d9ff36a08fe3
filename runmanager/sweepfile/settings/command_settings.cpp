// The tables of the keys of a sweep file that runs a person's own program.
#include <algorithm>

#include "runmanager/config/command_spec.h"
#include "runmanager/sweepfile/settings/setting_rows.h"
#include "runmanager/sweepfile/settings/settings.h"

namespace sweep {

using namespace rows;  // NOLINT(google-build-using-namespace): tables of nothing but rows.

namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxGpus = 1000;

}  // namespace

bool is_command_file(const JsonView& root) { return static_cast<bool>(root.find("command")); }

std::span<const Setting> settings_of(const JsonView& root) {
  return is_command_file(root) ? command_settings() : file_settings();
}

std::span<const Setting> timeout_settings() {
  static const std::vector<Setting> settings = {
      number("run", 0.0, false, "seconds after which a run is ended as failed; 0: none"),
      number("silence", 0.0, false, "seconds without output or a metric after which it is; 0: none"),
      number("grace", CommandSpec().grace, false,
             "seconds that a program has to end by itself after SIGTERM, before SIGKILL"),
  };
  return settings;
}

std::span<const Setting> command_stop_settings() {
  static const std::vector<Setting> settings = [] {
    std::vector<Setting> rows(stop_settings().begin(), stop_settings().end());
    Setting& metric = *std::ranges::find(rows, "metric", &Setting::name);
    metric = path("metric", metric.help);
    metric.default_value = "loss";
    std::erase_if(rows, [](const Setting& row) { return row.name == "restore_best"; });
    return rows;
  }();
  return settings;
}

std::span<const Setting> command_settings() {
  static const std::vector<Setting> settings = [] {
    const Json text = {{"type", "string"}}, texts = list_of(text, 1);
    std::vector<Setting> rows = {
        custom("command",
               "the program and its arguments, a list; {lr} is the value of a parameter, {flags} all as "
               "--lr=0.1, "
               "{overrides} all as lr=0.1, {params} a JSON file with them, {run_dir} the run's directory, "
               "{seed} "
               "its seed",
               false, {.allowed = "a list of words", .schema = {{"anyOf", Json::array({texts, text})}}}),
        boolean("shell", false, "whether the command is one text for /bin/sh; values are quoted"),
        path("cwd",
             "where it runs: a directory, relative to this file; run: the run's own; default: that of "
             "this file"),
        custom("inputs",
               "files that it reads, * and ? allowed: a run is another one if their content changes", false,
               {.allowed = "a list of paths", .schema = texts}),
        custom("metrics",
               "metric and regular expression, whose first group is a value of it in a line of the output; a "
               "group (?<step>...) is its step",
               false,
               {.allowed = "an object of metrics and regular expressions",
                .schema = {{"type", "object"}, {"additionalProperties", text}}}),
        path("objective", "the metric that runs are judged by"),
        choice("mode", {"min", "max"}, std::nullopt, "of objective: which of its values is the best"),
        choice("flags", {"dashes", "underscores"}, "dashes",
               "how {flags} writes batch_size: --batch-size or "
               "--batch_size"),
        integer(
            "reports", 1, kMaxCount, 1,
            "steps that a whole run reports: for the display, and for searches that compare unfinished runs"),
        integer("gpus", 0, kMaxGpus, 0,
                "GPUs that each run has for itself, by CUDA_VISIBLE_DEVICES; 0: it sees all"),
        integer("runs_per_gpu", 1, kMaxGpus, 1, "runs that may share a GPU"),
        custom("timeout", "when a program is ended", false,
               {.schema = definition("timeout"), .has_parts = true, .settings = timeout_settings}),
    };
    for (Setting& row : rows) row.sweepable = false;
    for (const Setting& row : file_settings()) {
      if (!row.sweepable) rows.push_back(row);  // name, repeats, params, search, …
    }
    Setting stop = *find_setting(file_settings(), "stop");
    stop.sweepable = false;
    rows.push_back(std::move(stop));
    return rows;
  }();
  return settings;
}

}  // namespace sweep
