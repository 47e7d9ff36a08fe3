// The tables of the keys of the file's other objects.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "core/engine/device.h"
#include "core/engine/parallel.h"
#include "runmanager/config/metrics.h"
#include "runmanager/config/run_config.h"
#include "runmanager/config/search_spec.h"
#include "runmanager/sweepfile/search_reader.h"
#include "runmanager/sweepfile/settings/settings.h"

namespace sweep {

using namespace rows;  // NOLINT(google-build-using-namespace): tables of nothing but rows.

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxGoals = 4;   // Hypervolumes of more take long.
constexpr double kMaxTrials = 100000;  // Each is a directory.

// complete_judged() says what is best if the file does not.
Json complete_mode(const Setting& row, const Given& given) {
  const Json mode = complete_plain(row, given), &metric = given.before.at("metric");
  if (!mode.is_null() && (metric.is_array() != mode.is_array() || metric.size() != mode.size()))
    given.problems.add_value(
        given.value, metric.is_array() ? fmt::format("a list of {}, one for each metric", metric.size())
                                       : "min or max, as there is one metric");
  return mode.is_null() ? Json("min") : mode;
}

// What is judged by metrics.
Json complete_judged(const Setting& row, const Given& given) {
  if (!given.value->is_object()) return complete_plain(row, given);
  JsonDocument part(given.value);
  if (!part.json.contains("metric")) part.json["metric"] = goals_in(part.json, *given.object)[0].asked;
  Json json = complete_plain(row, {part, given.object, given.before, given.context, given.problems});
  Json goals = json, modes = Json::array();
  if (!part.json.contains("mode")) goals.erase("mode");
  for (const Goal& goal : goals_in(goals, *given.object))
    modes.push_back(goal.largest_is_best ? "max" : "min");
  json["mode"] = json["metric"].is_array() ? modes : modes[0];
  return json;
}

Json complete_metrics(const Setting& row, const Given& given) {
  Json names = complete_plain(row, given);
  if (!names.is_array()) return names;
  std::set<const Metric*> metrics;
  for (const Json& name : names) metrics.insert(&metric_called(name.get<std::string>()));
  if (metrics.size() == names.size()) return names;
  given.problems.add_value(given.value, row.allowed);
  return default_of(row);
}

// One value, or one for each of several goals.
Setting of_goals(std::string name, std::string allowed, Setting alone, Setting item, std::string help) {
  return or_alone(list(std::move(name), std::move(allowed), std::move(item),
                       {.minimum = 2, .maximum = kMaxGoals}, std::move(help)),
                  std::move(alone), false);
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

constexpr TextRule kStageDevice = {"cpu, cuda, cuda:N or cpu:N (N is a device number from 0)",
                                   is_stage_device, "^(cpu|cuda)(:[0-9]+)?$"};

Json complete_model(const Setting& row, const Given& given) {
  Json model = complete_plain(row, given);
  for (auto& [layers, name] : model.items()) {
    const Device device = parse_device(name.get<std::string>());
    name = device.name();
    const std::string first = model.front();
    if (parse_device(first).type != device.type)
      given.problems.add(given.value.find(layers),
                         fmt::format("got {}, but {} is on {}, want devices of one kind", device.name(),
                                     model.begin().key(), first));
  }
  return model;
}

constexpr TextRule kLayer = {"the name of a layer", [](const std::string& text) { return !text.empty(); },
                             kNotEmpty};

Setting stages_row() {
  Setting count = integer("", 1, kMaxReplicas, 1, "");
  count.allowed = fmt::format("an integer >= 1 and <= {}, or a list of layer names", kMaxReplicas);
  return or_alone(
      list("stages", count.allowed, text("", kLayer, ""), {.minimum = 1},
           "how many, of about the same work; or the layers that the second and later ones begin with; "
           "default: the devices of model"),
      count, false);
}

Json complete_pipeline(const Setting& row, const Given& given) {
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

Json learned_result() {
  return {{"type", "object"},
          {"properties", {{"params", {{"type", "object"}}}, {"value", {{"type", "number"}}}}},
          {"required", {"params", "value"}}};
}

Json complete_parallel(const Setting& row, const Given& given) {
  const Json json = complete_plain(row, given);
  return json.empty() ? Json("none") : json;
}

}  // namespace

Setting rows::stop(bool is_of_program) {
  constexpr const char* kMetric = "the metric that has to improve";
  Setting metric = is_of_program ? metric_name("metric", kMetric)
                                 : choice("metric", watchable_tags(), StopSpec().goal.asked, kMetric);
  if (is_of_program) metric.default_value = "loss";
  std::vector<Setting> keys = {
      std::move(metric),
      choice("mode", {"min", "max"}, std::nullopt,
             "whether the smallest or the largest value is the best; default: max for accuracies, Number "
             "Correct and R2")
          .completed_by(complete_mode),
      integer("patience", 1, kMaxCount, StopSpec().patience,
              "epochs without an improvement after which the run ends"),
      number("min_delta", StopSpec().min_delta, false, "an improvement is more than this"),
  };
  if (!is_of_program)
    keys.push_back(
        boolean("restore_best", StopSpec().restore_best,
                "whether test and predictions are those of the best epoch's weights instead of the last's"));
  Setting row = object("stop", "early stopping: when a run ends before its last epoch", std::move(keys));
  if (is_of_program) row.definition = "program_stop";
  return std::move(row).completed_by(complete_judged).if_given();
}

Setting rows::search(bool is_of_program) {
  const Setting any = metric_name("metric", ""), mode = choice("mode", {"min", "max"}, std::nullopt, "");
  const auto one_of = [&any, is_of_program](std::vector<std::string> tags) {
    return is_of_program ? any : choice("metric", std::move(tags), std::nullopt, "");
  };
  Setting metric =
      of_goals("metric", "one metric, or a list of two to four different ones", one_of(watchable_tags()),
               one_of(goal_tags()),
               is_of_program ? "what is best, at the last report of a trial; a list: several goals"
                             : "what is best, at the last epoch of a trial; at its best epoch where that is "
                               "kept; a list: several goals")
          .completed_by(complete_metrics);
  metric.default_value = is_of_program ? "loss" : "Loss/validation";
  std::vector<Setting> keys = {
      choice(
          "method", search_method_names().all(), "grid",
          "grid: every combination; random: points of the space; tpe: points near the best so far; halving: "
          "the worse ones are ended early; hyperband: several halvings; asha: halving that does not wait for "
          "all results of a rung; population: the worse ones go on as changed copies of the better ones"),
      integer("trials", 0, kMaxTrials, 0,
              "how many points are drawn; 0: every combination, of hyperband one round of its brackets; of a "
              "population its members"),
      std::move(metric),
      of_goals("mode", "min or max, or a list of these, one for each metric", mode, mode,
               "whether the smallest or the largest value is the best; default: max for accuracies, "
               "Number Correct and R2")
          .completed_by(complete_mode),
      integer("seed", 0, kMaxExactInteger, 0, "start of the random numbers of the search"),
      choice("sampler", {"random", "tpe"}, std::nullopt,
             "of halving, hyperband and asha: how points are drawn; default: random"),
      integer("at_once", 1, 1024, static_cast<std::int64_t>(SearchSpec().at_once),
              "of tpe and asha, and with a target: trials that may be trained at once; each is chosen "
              "without the results of the previous at_once - 1, whatever --jobs is"),
      integer("min_epochs", 1, kMaxCount, SearchSpec().min_epochs,
              "of halving, hyperband and asha: epochs before the first trials are ended"),
      integer("reduction", 2, 100, SearchSpec().reduction,
              "of halving, hyperband and asha: one in N goes on; of population: is replaced"),
      integer("interval", 1, kMaxCount, SearchSpec().interval,
              "of population: epochs after which the worst are replaced, again and again"),
      {{.name = "target",
        .kind = ArgumentKind::kNumber,
        .minimum = -kUnbounded,
        .optional = true,
        .help = "once a trial has this value of the metric, no other is begun"}},
      number("seconds", std::nullopt, true,
             "no other trial is begun once the times of all add up to this many seconds"),
      list("points", R"(a list of points, such as [{"lr": 0.1}])",
           custom("", {{"type", "object"}, {"minProperties", 1}}, ""), {},
           "what is tried first: values of axes; others are drawn"),
      list("learn_from", R"(a list of directories of sweeps, such as ["runs/first"])",
           custom("", {{"anyOf", Json::array({{{"type", "string"}, {"minLength", 1}}, learned_result()})}},
                  ""),
           {}, "of tpe: directories of sweeps whose completed runs count as trials, or results as objects"),
  };
  Setting row =
      object("search", "which points are trained, for how long, and when the search ends", std::move(keys));
  if (is_of_program) row.definition = "program_search";
  return std::move(row).completed_by(complete_judged).not_swept();
}

Setting rows::log() {
  std::vector<Setting> keys = {
      image_count("images", 64, "samples of the first batch that are shown; 0 or false: none"),
      boolean("image_labels", false, "their classes, or numbers, are written below them"),
      boolean("graph", true, "the network as a graph"),
      boolean("histograms", true, "every parameter and gradient, per epoch"),
      boolean("hparams", true, "the table of hyperparameters and metrics"),
      boolean("text", true, "configuration and provenance"),
      boolean("layout", true, "the custom scalars dashboard"),
      boolean("predictions", true,
              "PR curves, confusion matrix and misclassified samples at the end of a run"),
      integer("batches", 0, kMaxCount, 0, "loss and accuracy every N batches; 0: never"),
      integer("validation_batches", 0, kMaxCount, 0,
              "with batches, each time also those of N batches of the validation set, from random places"),
  };
  return object("log", "what is logged besides the scalars", std::move(keys)).of_times();
}

Setting rows::parallel() {
  std::vector<Setting> pipeline = {
      stages_row(),
      integer("micro_batches", 1, kMaxCount, PipelineOptions().micro_batches, "parts of a batch"),
      choice(
          "schedule", pipeline_schedule_names().all(),
          pipeline_schedule_names().of(PipelineOptions().schedule),
          "gpipe: all parts forward, then all back; 1f1b: each part back as soon as it can, which takes less "
          "memory on the CPU"),
  };
  std::vector<Setting> keys = {
      integer("data", 1, kMaxReplicas, 1, "devices, or sets of them, that share each batch").unless_default(),
      map("model", "an object of layers and devices, such as {\"conv*\": \"cpu:0\", \"fc*\": \"cpu:1\"}",
          text("", kStageDevice, ""), {.minimum = 1},
          "layers and the device that computes them: names or patterns such as \"conv*\", the first that "
          "fits counts; other layers are where the one before them is")
          .completed_by(complete_model),
      object("pipeline", "layers in a row are a stage, and stages work on different parts of a batch",
             std::move(pipeline))
          .if_given()
          .completed_by(complete_pipeline),
  };
  Setting row = object("parallel", "none, or how several devices train one network", std::move(keys));
  row.schema = {{"enum", {"none"}}};
  row.allowed = "none, or an object with any of: data, model, pipeline";
  return std::move(row).of_times().completed_by(complete_parallel);
}

}  // namespace sweep
