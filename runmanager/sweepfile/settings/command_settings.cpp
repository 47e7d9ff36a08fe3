// The tables of the keys of a sweep file that runs a person's own program.
#include "core/base/error.h"
#include "runmanager/config/run_config.h"
#include "runmanager/sweepfile/metric_pattern.h"
#include "runmanager/sweepfile/settings/settings.h"

namespace sweep {

using namespace rows;  // NOLINT(google-build-using-namespace): tables of nothing but rows.

namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxGpus = 1000;

bool has_no_nul(const std::string& text) { return text.find('\0') == std::string::npos; }
constexpr TextRule kText = {"a text", has_no_nul, kAnyText};
constexpr const char* kWords = "a list of words, such as [\"python3\", \"train.py\", \"{flags}\"]";

Setting texts(std::string name, std::string allowed, std::string help) {
  return list(std::move(name), std::move(allowed), text("", kText, ""), {.minimum = 1}, std::move(help));
}

Json complete_command(const Setting&, const Given& given) {
  static const Setting words = texts("", kWords, "");
  const JsonView& node = given.value;
  const bool is_text = node->is_string(), is_shell = *given.object.find("shell") == true;
  if (is_text && !is_shell) {
    given.problems.add(node,
                       "got one text, want a list of words, such as [\"python3\", \"train.py\"]; or "
                       "\"shell\": true");
    return nullptr;
  }
  if (is_shell && !is_text && node->size() > 1) {
    given.problems.add_value(node, "one text, as \"shell\" is true");
    return nullptr;
  }
  Json list = is_text ? Json::array({*node}) : complete_plain(words, given);
  if (!list.empty() && list[0].is_string() && list[0].get_ref<const std::string&>().empty())
    given.problems.add_value(node, "a program as the first word");
  return list;
}

bool check_pattern(const JsonView& node, Problems& problems) {
  try {
    if (node->is_string())
      MetricPattern(node.text());
    else
      problems.add_value(node, "a regular expression, whose first group is the value");
    return node->is_string();
  } catch (const ConfigError& error) {
    problems.add_value(node, error.what());
    return false;
  }
}

Setting pattern() {
  Setting row = custom("", {{"type", "string"}}, "");
  row.kind = ArgumentKind::kPath;
  row.check = check_pattern;
  return row;
}

// The seconds of the run alone represent an object.
Setting timeout() {
  Setting row =
      object("timeout", "when a program is ended",
             {number("run", 0.0, false, "seconds after which a run is ended as failed; 0: none"),
              number("silence", 0.0, false, "seconds without output or a metric after which it is; 0: none"),
              number("grace", CommandSpec().grace, false,
                     "seconds that a program has to end by itself after SIGTERM, before SIGKILL")});
  row.short_key = "run";
  row.schema = {{"type", "number"}, {"minimum", 0}};
  row.allowed = "a number of seconds, or an object with any of: run, silence, grace";
  return row;
}

}  // namespace

bool is_command_file(const JsonView& root) { return static_cast<bool>(root.find("command")); }

std::span<const Setting> settings_of(const JsonView& root) {
  return is_command_file(root) ? command_settings() : top_level_settings();
}

std::span<const Setting> command_settings() {
  static const std::vector<Setting> settings = [] {
    const Json text = {{"type", "string"}};
    std::vector<Setting> rows = {
        custom("command", {{"anyOf", Json::array({list_of(text, {.minimum = 1}), text})}},
               "the program and its arguments, a list; {lr} is the value of a parameter, {flags} all as "
               "--lr=0.1, "
               "{overrides} all as lr=0.1, {params} a JSON file with them, {run_dir} the run's directory, "
               "{seed} "
               "its seed")
            .completed_by(complete_command),
        boolean("shell", false, "whether the command is one text for /bin/sh; values are quoted"),
        path("cwd",
             "where it runs: a directory, relative to this file; run: the run's own; default: that of "
             "this file"),
        texts("inputs", "a list of paths",
              "files that it reads, * and ? allowed: a run is another one if their content changes"),
        map("metrics", "an object of metrics and regular expressions: {\"loss\": \"loss=([0-9.]+)\"}",
            pattern(), {},
            "metric and regular expression, whose first group is a value of it in a line of the output; a "
            "group (?<step>...) is its step"),
        metric_name("objective",
                    "the metric that runs are judged by, also by a search or stop without its own"),
        choice("mode", {"min", "max"}, std::nullopt,
               "which value of the objective is the best, or of the metric that is taken without one"),
        choice("flags", {"dashes", "underscores"}, "dashes",
               "how {flags} writes batch_size: --batch-size or "
               "--batch_size"),
        integer(
            "reports", 1, kMaxCount, 1,
            "steps that a whole run reports: for the display, and for searches that compare unfinished runs"),
        integer("gpus", 0, kMaxGpus, 0,
                "GPUs that each run has for itself, by CUDA_VISIBLE_DEVICES; 0: it sees all"),
        integer("runs_per_gpu", 1, kMaxGpus, 1, "runs that may share a GPU"),
        timeout(),
    };
    for (const Setting& row : top_level_settings()) {
      if (row.sweepable) continue;
      rows.push_back(row.name == "search" ? search(true) : row);  // name, params, …
      if (row.name == "params") rows.back().schema = definition("program_axes");
      if (row.name == "grids") rows.back().schema = list_of(definition("program_axes"), {.minimum = 1});
    }
    rows.push_back(stop(true));
    for (Setting& row : rows) row.sweepable = false;
    return rows;
  }();
  return settings;
}

}  // namespace sweep
