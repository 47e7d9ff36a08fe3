// The tables of the keys of the file's other objects.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "core/engine/device.h"
#include "core/spec/parallel.h"
#include "runmanager/config/metrics.h"
#include "runmanager/config/run_config.h"
#include "runmanager/sweepfile/search_reader.h"
#include "runmanager/sweepfile/settings/setting_rows.h"
#include "runmanager/sweepfile/settings/settings.h"

namespace sweep {

using namespace rows;  // NOLINT(google-build-using-namespace): tables of nothing but rows.

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxGoals = 4;   // Hypervolumes of more take long.
constexpr double kMaxTrials = 100000;  // Each is a directory.

// What is best of the metric, or of each of several, if the file does not say.
Json complete_mode(const Setting& row, const Given& given) {
  const Json mode = complete_plain(row, given), &metric = given.before.at("metric");
  if (metric.is_array() == mode.is_array() && !mode.is_null() && metric.size() == mode.size()) return mode;
  if (!mode.is_null())
    given.problems.add_value(
        given.value, metric.is_array() ? fmt::format("a list of {}, one for each metric", metric.size())
                                       : "min or max, as there is one metric");
  const auto best_of = [](const Json& name) {
    return metric_called(name.get<std::string>()).larger_is_better ? "max" : "min";
  };
  if (!metric.is_array()) return best_of(metric);
  Json modes = Json::array();
  for (const Json& name : metric) modes.push_back(best_of(name));
  return modes;
}

// Checks each element of a list by `item`.
bool check_items(const JsonView& node, const Setting& item, Problems& problems) {
  bool is_good = true;
  for (const JsonView& element : node.children()) is_good = check_value(element, item, problems) && is_good;
  return is_good;
}

bool check_modes(const JsonView& node, Problems& problems) {
  static const Setting mode = choice("mode", {"min", "max"}, std::nullopt, "");
  return node->is_array() ? check_items(node, mode, problems) : check_value(node, mode, problems);
}

// A metric, or a list of different ones.
template <bool kIsOfProgram>
bool check_metrics(const JsonView& node, Problems& problems) {
  static const Setting any = path("metric", ""),
                       one = kIsOfProgram ? any : choice("metric", watchable_tags(), std::nullopt, ""),
                       item = kIsOfProgram ? any : choice("metric", goal_tags(), std::nullopt, "");
  if (!node->is_array()) return check_value(node, one, problems);
  if (!check_items(node, item, problems)) return false;
  std::set<const Metric*> metrics;
  for (const JsonView& name : node.children()) metrics.insert(&metric_called(name.text()));
  const bool is_good = metrics.size() == node->size() && node->size() > 1 && node->size() <= kMaxGoals;
  if (!is_good) problems.add_value(node, "one metric, or a list of two to four different ones");
  return is_good;
}

Setting with_list(Setting row, const Json& one, const Json& item, bool (*check)(const JsonView&, Problems&)) {
  row.format = SettingFormat{};
  Json list = list_of(item, 2);
  list["maxItems"] = kMaxGoals;
  row.format->schema = {{"anyOf", Json::array({one, list})}};
  row.format->check = check;
  return row;
}

// "cpu:1" of a stage; "auto" says nothing there.
bool is_stage_device(const std::string& text) {
  try {
    parse_device(text);
    return text != "auto";
  } catch (const ConfigError&) {
    return false;
  }
}

Json complete_model(const Setting&, const Given& given) {
  if (!given.value) return nullptr;
  const JsonView& node = given.value;
  Problems& problems = given.problems;
  if (!node->is_object() || node->empty()) {
    problems.add_value(node,
                       "an object of layers and devices, such as {\"conv*\": \"cpu:0\", \"fc*\": \"cpu:1\"}");
    return nullptr;
  }
  Json model = Json::object();
  for (const JsonView& member : node.children()) {
    if (!member->is_string() || !is_stage_device(member.text())) {
      problems.add_value(member, "cpu, cuda, cuda:N or cpu:N (N is a device number from 0)");
      continue;
    }
    const Device device = parse_device(member.text());
    model[member.key()] = device.name();
    const std::string first = model.front();
    if (parse_device(first).type != device.type)
      problems.add(member, fmt::format("got {}, but {} is on {}, want devices of one kind", device.name(),
                                       model.begin().key(), first));
  }
  return model;
}

Json complete_stages(const Setting&, const Given& given) {
  if (!given.value) return nullptr;
  const JsonView& node = given.value;
  const auto is_name = [](const JsonView& e) { return e->is_string() && !e.text().empty(); };
  const bool is_count = node->is_number_integer() && node.number() >= 1 && node.number() <= kMaxReplicas;
  const bool are_names = node->is_array() && !node->empty() && std::ranges::all_of(node.children(), is_name);
  if (is_count || are_names) return *node;
  given.problems.add_value(node,
                           fmt::format("an integer >= 1 and <= {}, or a list of layer names", kMaxReplicas));
  return nullptr;
}

Json complete_pipeline(const Setting& row, const Given& given) {
  if (!given.value) return nullptr;
  const JsonView& node = given.value;
  const JsonView stages = node.find("stages");
  const bool has_model = static_cast<bool>(given.object.find("model"));
  if (stages && has_model) {
    given.problems.add(stages, "stages are those of \"model\", which names their devices; want one of both");
  } else if (node->is_object() && !stages && !has_model) {
    given.problems.add(node, "\"stages\" is missing, want how many, or the layers they begin with");
  }
  return complete_plain(row, given);
}

bool check_list(const JsonView& node, Problems& problems) {
  if (node->is_array()) return true;
  problems.add_value(node, "a list");
  return false;
}

Json learned_result() {
  return {{"type", "object"},
          {"properties", {{"params", {{"type", "object"}}}, {"value", {{"type", "number"}}}}},
          {"required", {"params", "value"}}};
}

}  // namespace

Json complete_parallel(const Setting&, const Given& given) {
  const JsonView node = given.value;
  const Json none = "none";
  if (!node || (node->is_string() && node.text() == "none")) return none;
  if (!node->is_object()) {
    given.problems.add_value(node, "none, or an object with any of: data, model, pipeline");
    return none;
  }
  const Json json = complete_object(node, parallel_settings(), given.context, given.problems);
  return json.empty() ? none : json;
}

std::span<const Setting> stop_settings() {
  static const std::vector<Setting> settings = {
      choice("metric", watchable_tags(), StopSpec().goal.asked, "the metric that has to improve"),
      choice("mode", {"min", "max"}, std::nullopt,
             "whether the smallest or the largest value is the best; default: max for accuracies, Number "
             "Correct and R2")
          .completed_by(complete_mode),
      integer("patience", 1, kMaxCount, StopSpec().patience,
              "epochs without an improvement after which the run ends"),
      number("min_delta", StopSpec().min_delta, false, "an improvement is more than this"),
      boolean("restore_best", StopSpec().restore_best,
              "whether test and predictions are those of the best epoch's weights instead of the last's"),
  };
  return settings;
}

namespace {

std::vector<Setting> search_rows(bool is_of_program) {
  const Json any = {{"type", "string"}, {"minLength", 1}}, mode = {{"enum", {"min", "max"}}};
  Setting metric =
      is_of_program
          ? with_list(path("metric", "what is best, at the last report of a trial; a list: several goals"),
                      any, any, check_metrics<true>)
          : with_list(choice("metric", watchable_tags(), std::nullopt,
                             "what is best, at the last epoch of a trial; at its best epoch where that is "
                             "kept; a list: several goals"),
                      {{"enum", watchable_tags()}}, {{"enum", goal_tags()}}, check_metrics<false>);
  metric.default_value = is_of_program ? "loss" : "Loss/validation";
  return {
      choice(
          "method", {search_method_names().begin(), search_method_names().end()}, "grid",
          "grid: every combination; random: points of the space; tpe: points near the best so far; halving: "
          "the worse ones are ended early; hyperband: several halvings; asha: halving that does not wait for "
          "all results of a rung; population: the worse ones go on as changed copies of the better ones"),
      integer("trials", 0, kMaxTrials, 0,
              "how many points are drawn; 0: every combination, of hyperband one round of its brackets; of a "
              "population its members"),
      std::move(metric),
      with_list(choice("mode", {"min", "max"}, std::nullopt,
                       "whether the smallest or the largest value is the best; default: max for accuracies, "
                       "Number Correct and R2"),
                mode, mode, check_modes)
          .completed_by(complete_mode),
      integer("seed", 0, kMaxExactInteger, 0, "start of the random numbers of the search"),
      choice("sampler", {"random", "tpe"}, std::nullopt,
             "of halving, hyperband and asha: how points are drawn; default: random"),
      integer("at_once", 1, 1024, static_cast<std::int64_t>(SearchSpec().at_once),
              "of tpe and asha, and with a target: trials that may be trained at once; each is chosen from "
              "the results "
              "of all before but so many, whatever --jobs is"),
      integer("min_epochs", 1, kMaxCount, SearchSpec().min_epochs,
              "of halving, hyperband and asha: epochs before the first trials are ended"),
      integer("reduction", 2, 100, SearchSpec().reduction,
              "of halving, hyperband and asha: one in so many goes on; of population: is replaced"),
      integer("interval", 1, kMaxCount, SearchSpec().interval,
              "of population: epochs after which the worst are replaced, again and again"),
      any_number("target", "once a trial has this value of the metric, no other is begun"),
      number("seconds", std::nullopt, true,
             "no other trial is begun once the trials have taken so long, the sum of their times"),
      custom("points", "what is tried first: values of axes; others are drawn", false,
             {.allowed = "a list of objects with values of axes",
              .schema = list_of({{"type", "object"}, {"minProperties", 1}}),
              .check = check_list}),
      custom("learn_from",
             "of tpe: directories of sweeps whose completed runs count as trials, or results as objects",
             false,
             {.allowed = "a list of directories of sweeps",
              .schema = list_of(
                  {{"anyOf", Json::array({Json{{"type", "string"}, {"minLength", 1}}, learned_result()})}}),
              .check = check_list}),
  };
}

}  // namespace

std::span<const Setting> search_settings() {
  static const std::vector<Setting> settings = search_rows(false);
  return settings;
}

std::span<const Setting> command_search_settings() {
  static const std::vector<Setting> settings = search_rows(true);
  return settings;
}

std::span<const Setting> log_settings() {
  static const std::vector<Setting> settings = {
      image_count("images", 64, "samples of the first batch that are shown; 0 or false: none"),
      boolean("image_labels", false, "their classes, or numbers, are written below them"),
      boolean("graph", true, "the network as a graph"),
      boolean("histograms", true, "every parameter and gradient, per epoch"),
      boolean("hparams", true, "the table of hyperparameters and metrics"),
      boolean("text", true, "configuration and provenance"),
      boolean("layout", true, "the custom scalars dashboard"),
      boolean("predictions", true,
              "PR curves, confusion matrix and misclassified samples at the end of a run"),
      integer("batches", 0, kMaxCount, 0, "loss and accuracy every so many batches; 0: never"),
      integer(
          "validation_batches", 0, kMaxCount, 0,
          "with batches, each time also those of so many batches of the validation set, from random places"),
  };
  return settings;
}

std::span<const Setting> parallel_settings() {
  static const std::vector<Setting> settings = {
      integer("data", 1, kMaxReplicas, 1, "devices, or sets of them, that share each batch").unless_default(),
      custom(
          "model",
          "layers and the device that computes them: names or patterns such as \"conv*\", the first that "
          "fits counts; other layers are where the one before them is",
          true,
          {.allowed = "an object of layers and devices",
           .schema = {{"type", "object"},
                      {"minProperties", 1},
                      {"additionalProperties", {{"type", "string"}, {"pattern", "^(cpu|cuda)(:[0-9]+)?$"}}}},
           .has_parts = true})
          .completed_by(complete_model),
      custom("pipeline", "layers in a row are a stage, and stages work on different parts of a batch", true,
             {.schema = definition("pipeline"), .has_parts = true, .settings = pipeline_settings})
          .completed_by(complete_pipeline),
  };
  return settings;
}

std::span<const Setting> pipeline_settings() {
  const Json names = list_of({{"type", "string"}, {"minLength", 1}}, 1);
  static const std::vector<Setting> settings = {
      custom("stages",
             "how many, of about the same work; or the layers that the second and later ones begin with; "
             "default: the devices of model",
             true,
             {.allowed = "an integer >= 1, or a list of layer names",
              .schema = {{"anyOf", Json::array({Json{{"type", "integer"}, {"minimum", 1}}, names})}}})
          .completed_by(complete_stages),
      integer("micro_batches", 1, kMaxCount, PipelineOptions().micro_batches, "parts of a batch"),
      choice(
          "schedule", {pipeline_schedule_names().begin(), pipeline_schedule_names().end()},
          pipeline_schedule_name(PipelineOptions().schedule),
          "gpipe: all parts forward, then all back; 1f1b: each part back as soon as it can, which takes less "
          "memory on the CPU"),
  };
  return settings;
}

}  // namespace sweep
