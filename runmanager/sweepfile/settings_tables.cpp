// The tables themselves: one row per key.
#include "core/data/augment.h"
#include "core/data/known_datasets.h"
#include "core/data/readers/data_format.h"
#include "core/data/split_method.h"
#include "core/spec/loss.h"
#include "core/spec/optimizer.h"
#include "core/spec/placement.h"
#include "core/spec/precision.h"
#include "core/spec/schedule.h"
#include "runmanager/config/epoch_metrics.h"
#include "runmanager/config/run_config.h"
#include "runmanager/sweepfile/search_reader.h"
#include "runmanager/sweepfile/settings.h"
#include "runmanager/sweepfile/text_rules.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMaxExactInteger = 9007199254740992.0;  // 2^53: doubles hold every integer up to here.
constexpr double kMaxImageExtent = 8192;                 // pixels
constexpr double kMaxTrials = 100000;                    // Each is a directory.
constexpr double kMaxCount = 1e9;  // Catches typing errors in epochs, repeats or samples.

// Not as a nested initializer: where memory runs out in the middle of one, GCC 12 destroys the parts that it
// has twice.
Setting setting(ArgumentType type, std::optional<SettingFormat> format = std::nullopt,
                bool sweepable = true) {
  Setting result;
  static_cast<ArgumentType&>(result) = std::move(type);
  result.format = std::move(format);
  result.sweepable = sweepable;
  return result;
}

Setting integer(std::string name, double minimum, double maximum, std::int64_t value, std::string help,
                bool sweepable = true) {
  return setting({.name = std::move(name),
                  .kind = ArgumentKind::kInteger,
                  .default_value = value,
                  .minimum = minimum,
                  .maximum = maximum,
                  .help = std::move(help)},
                 std::nullopt, sweepable);
}

Setting number(std::string name, std::optional<ArgumentValue> value, bool positive, std::string help) {
  return setting({.name = std::move(name),
                  .kind = ArgumentKind::kNumber,
                  .default_value = std::move(value),
                  .exclusive = positive,
                  .help = std::move(help)});
}

Setting boolean(std::string name, bool value, std::string help) {
  return setting({.name = std::move(name),
                  .kind = ArgumentKind::kBoolean,
                  .default_value = value,
                  .help = std::move(help)});
}

// `value` has to be one of `choices`.
Setting choice(std::string name, std::vector<std::string> choices, std::optional<std::string> value,
               std::string help) {
  return setting({.name = std::move(name),
                  .kind = ArgumentKind::kChoice,
                  .default_value = std::move(value),
                  .help = std::move(help),
                  .choices = std::move(choices)});
}

Setting path(std::string name, std::string help) {
  return setting({.name = std::move(name), .kind = ArgumentKind::kPath, .help = std::move(help)});
}

// Numbers per channel.
Setting channels(std::string name, double minimum, bool positive) {
  return setting({.name = std::move(name),
                  .kind = ArgumentKind::kNumberList,
                  .minimum = minimum,
                  .maximum = 1e6,
                  .exclusive = positive});
}

Setting count_or_fraction(std::string name, std::string help) {
  return setting({.name = std::move(name),
                  .kind = ArgumentKind::kCountOrFraction,
                  .default_value = std::int64_t{0},
                  .maximum = kMaxCount,
                  .help = std::move(help)});
}

// Height and width of an image.
Setting extents(std::string name, std::string help) {
  return setting({.name = std::move(name),
                  .kind = ArgumentKind::kIntegerPair,
                  .minimum = 1,
                  .maximum = kMaxImageExtent,
                  .help = std::move(help)});
}

Setting directory_name(std::string name, std::string help, bool sweepable) {
  const Json schema = {
      {"type", "string"},
      {"minLength", 1},
      {"maxLength", kMaxNameLength},
      {"pattern", R"(^(?!.*\.mean$)[^\u0000-\u001f\u007f. \-/\\:*?"<>|][^\u0000-\u001f\u007f/\\:*?"<>|]*$)"}};
  return setting(
      {.name = std::move(name), .kind = ArgumentKind::kPath, .help = std::move(help)},
      SettingFormat{.allowed = "a directory name", .schema = schema, .check = check_directory_name},
      sweepable);
}

Setting column(std::string name, std::string help) {
  return setting({.name = std::move(name), .kind = ArgumentKind::kPath, .help = std::move(help)},
                 SettingFormat{.allowed = "the name of a column or an array",
                               .schema = {{"type", "string"}, {"minLength", 1}},
                               .check = check_column_name});
}

Setting columns(std::string name, std::string help) {
  const Json text = {{"type", "string"}, {"minLength", 1}};
  const Json list = {{"type", "array"}, {"items", text}, {"minItems", 1}};
  return {{.name = std::move(name), .help = std::move(help)},
          SettingFormat{.allowed = "the name of a column, or a list of such names",
                        .schema = {{"anyOf", Json::array({text, list})}},
                        .check = check_column_names}};
}

Setting device(std::string name, std::string value, std::string help) {
  const Json schema = {{"type", "string"}, {"pattern", "^(auto|(cpu|cuda)(:[0-9]+)?)$"}};
  return setting({.name = std::move(name), .default_value = std::move(value), .help = std::move(help)},
                 SettingFormat{.allowed = kAllowedDevices, .schema = schema, .check = check_device_name});
}

Setting image_count(std::string name, std::int64_t value, std::string help) {
  const Json count = {{"type", "integer"}, {"minimum", 0}, {"maximum", kMaxLoggedImages}};
  return setting({.name = std::move(name),
                  .kind = ArgumentKind::kInteger,
                  .default_value = value,
                  .help = std::move(help)},
                 SettingFormat{.allowed = "",
                               .schema = {{"anyOf", Json::array({count, Json{{"type", "boolean"}}})}},
                               .check = check_image_count});
}

Json definition(const std::string& name) { return {{"$ref", "#/$defs/" + name}}; }

// An object or list with a reader of its own.
Setting custom(std::string name, std::string help, bool sweepable, SettingFormat format) {
  return setting({.name = std::move(name), .help = std::move(help)}, std::move(format), sweepable);
}

// A type by its name, or an object with that name and the type's arguments.
Setting named(const std::string& name, std::span<const NamedType> (*types)(), std::string default_type,
              std::string help) {
  return custom(name, std::move(help), true,
                {.schema = definition(name),
                 .has_parts = true,
                 .short_form = true,
                 .types = types,
                 .default_type = std::move(default_type)});
}

// A list of `items`, at least `minimum` of them.
Json list_of(Json items, std::size_t minimum = 0) {
  Json schema = {{"type", "array"}, {"items", std::move(items)}};
  if (minimum > 0) schema["minItems"] = minimum;
  return schema;
}

Json augment_schema() {
  Json choices = Json::array();
  for (const AugmentType& type : augment_types()) {
    const std::string name(type.name);
    Json arguments = {{"type", "object"}, {"additionalProperties", false}};
    if (type.argument.empty()) {
      choices.push_back({{"const", name}});
    } else {
      const std::string argument(type.argument);
      arguments["properties"][argument] = {{"type", "integer"}, {"minimum", 1}, {"maximum", kMaxImageExtent}};
      arguments["required"] = {argument};
    }
    Json object = {{"type", "object"}, {"additionalProperties", false}};
    object["properties"][name] = std::move(arguments);
    object["required"] = {name};
    choices.push_back(std::move(object));
  }
  Json list = list_of({{"anyOf", std::move(choices)}});
  list["maxItems"] = 16;
  return list;
}

std::vector<std::string> data_format_names() {
  std::vector<std::string> names;
  for (const DataFormat& format : data_formats()) names.emplace_back(format.name);
  return names;
}

}  // namespace

std::span<const Setting> file_settings() {
  static const std::vector<Setting> settings = {
      directory_name("name", "directory of the sweep below the log directory; default: the file's name",
                     false),
      custom("dataset", "what to train on: a name, or an object", true,
             {.schema = definition("dataset"),
              .has_parts = true,
              .short_form = true,
              .settings = dataset_settings}),
      custom("network", "a network file, relative to this one, or an object with layers", true,
             {.schema = {{"anyOf",
                          Json::array({Json{{"type", "string"}, {"minLength", 1}}, definition("network")})}},
              .has_parts = true}),
      named("optimizer", optimizer_types, OptimizerSpec{}.type,
            "a name, or an object with a name and PyTorch's arguments"),
      named("schedule", schedule_types, ScheduleSpec{}.type,
            "how lr changes while training: a name, or an object with a name and PyTorch's arguments"),
      named("loss", loss_types, LossSpec{}.type,
            "what training makes small: a name, or an object with a name and PyTorch's arguments"),
      number("clip_norm", std::nullopt, false,
             "gradients longer than this, all parameters as one vector, are shortened to it; 0, the default: "
             "never"),
      integer("epochs", 1, kMaxCount, 1, "passes over the training set"),
      boolean("evaluate_first", false,
              "whether the validation set is measured before training, too: epoch 0, the untrained network"),
      integer("seed", 0, kMaxExactInteger, 0,
              "start of all random numbers: initial weights and sample order"),
      integer("repeats", 1, kMaxCount, 1,
              "trainings of each combination, each with random numbers of its own", false),
      number("lr", 0.01, true, "learning rate"),
      integer("batch_size", 1, kMaxCount, 100,
              "samples per optimizer step; the last batch of an epoch may be shorter"),
      boolean("shuffle", true, "whether every epoch visits the samples in a new order"),
      integer("num_workers", 0, 1024, 0,
              "threads that prepare batches ahead; 0: the training thread does it"),
      device("device", "auto", "where to train; auto: CUDA if there is one, else the CPU"),
      choice("precision", {precision_names().begin(), precision_names().end()},
             precision_name(Precision::kFp32),
             "bf16: conv2d and linear round their factors to bf16, sums and all else stay fp32; only on CPUs "
             "that have it"),
      boolean(
          "deterministic", true,
          "false: on CUDA, libraries may add up in any order where that is faster; the same run then gives "
          "other last bits each time. Nothing on the CPU"),
      custom("stop", "when a run ends before its last epoch: early stopping", true,
             {.schema = definition("stop"), .has_parts = true, .settings = stop_settings}),
      choice("checkpoint", {kKeepLast, kKeepBest}, kKeepLast,
             "best: the weights of the best epoch are kept, too, in best.safetensors; by the metric of stop, "
             "else by the loss"),
      path("init", "safetensors file of weights to start from, relative to this file"),
      custom("log", "what is logged besides the scalars", true,
             {.schema = definition("log"), .has_parts = true, .settings = log_settings}),
      custom("params", "the axes: key, and the list of values to try", false, {.schema = definition("axes")}),
      custom("search", "which of the points are trained, how long, and when the sweep has found enough",
             false, {.schema = definition("search"), .has_parts = true, .settings = search_settings}),
      custom("zip", "lists of keys of axes that advance together", false,
             {.schema = list_of(list_of({{"type", "string"}}, 2))}),
      custom("exclude", "combinations to leave out", false, {.schema = list_of(definition("conditions"))}),
      custom("when", "axes that only exist where other keys have certain values", false,
             {.schema = {{"type", "object"}, {"additionalProperties", definition("conditions")}}}),
      custom("grids", "several sets of axes, each combined with params; all their runs together", false,
             {.schema = list_of(definition("axes"), 1)}),
      custom("$schema", "for editors; ignored", false, {}),
  };
  return settings;
}

std::span<const Setting> dataset_settings() {
  static const std::vector<Setting> settings = {
      directory_name("name", listed(dataset_names()) + ", or any name with a path", true),
      path("path", "folder, file or pattern of files, relative to this file"),
      choice("format", data_format_names(), std::nullopt, "how the files are written; default: by content"),
      count_or_fraction("validation",
                        "samples, or fraction, of the training set that is kept for validation"),
      count_or_fraction("test", "the same for a test set, of data that has none"),
      choice("split", {split_method_names().begin(), split_method_names().end()},
             split_method_name(SplitMethod::kAuto),
             "which samples these are: the last ones, any, or the same part of every class; auto: stratified "
             "for a folder of images, else end"),
      integer("split_seed", 0, kMaxExactInteger, 0,
              "start of the random numbers of split; the runs' seed does not change it"),
      integer("limit", 0, kMaxCount, 0, "use only the first so many samples; 0: all"),
      extents("resize",
              "[height, width] that images of a folder are brought to; default: they have one size"),
      boolean("grayscale", false, "images of a folder become one channel instead of three"),
      column("label", "the column of a table, or the array, with the classes; default: by its name"),
      columns("target", "the columns, or the array, of numbers to be predicted instead of classes"),
      choice("missing", {"error", "mean"}, "error",
             "values that are missing in a table or NaN in an array: the file is refused, or they become the "
             "mean "
             "of the training samples"),
      choice("categories", {"one_hot", "ordinal"}, "one_hot",
             "columns of text: a feature of 0 and 1 per category, or one feature with its number"),
      columns("categorical", "columns of numbers that are names, such as postcodes"),
      columns("ignore", "columns to leave out"),
      choice("placement", {placement_names().begin(), placement_names().end()},
             placement_name(Placement::kAuto),
             "where a GPU reads the samples from: its own memory, or batches that num_workers threads gather "
             "and copy; auto: its own if they fit. The same on the CPU"),
      custom("normalize",
             "mean and std per channel, or per feature of a table: x = (v - mean) / std, where v is byte / "
             "255 or "
             "a float; train: those of the training samples, as tables have it by default; none: x = v",
             true, {.settings = normalize_settings}),
      custom("augment",
             "random changes of the training images, new ones in each epoch: random_crop, horizontal_flip, "
             "cutout",
             true, {.allowed = "a list of changes", .schema = augment_schema()}),
  };
  return settings;
}

std::span<const Setting> normalize_settings() {
  static const std::vector<Setting> settings = {channels("mean", -1e6, false), channels("std", 0, true)};
  return settings;
}

std::span<const Setting> stop_settings() {
  static const std::vector<Setting> settings = {
      choice("metric", epoch_metric_tags(), StopSpec().metric, "the metric that has to improve"),
      choice("mode", {"min", "max"}, std::nullopt,
             "whether the smallest or the largest value is the best; default: max for accuracies, Number "
             "Correct and R2"),
      integer("patience", 1, kMaxCount, StopSpec().patience,
              "epochs without an improvement after which the run ends"),
      number("min_delta", StopSpec().min_delta, false, "an improvement is more than this"),
      boolean("restore_best", StopSpec().restore_best,
              "whether test and predictions are those of the best epoch's weights instead of the last's"),
  };
  return settings;
}

std::span<const Setting> search_settings() {
  const auto any_number = [](std::string name, std::string help) {
    return setting({.name = std::move(name),
                    .kind = ArgumentKind::kNumber,
                    .minimum = -kUnbounded,
                    .optional = true,
                    .help = std::move(help)});
  };
  static const std::vector<Setting> settings = {
      choice(
          "method", {search_method_names().begin(), search_method_names().end()}, "grid",
          "grid: every combination; random: points of the space; tpe: points near the best so far; halving: "
          "the worse ones are ended early; hyperband: several halvings"),
      integer("trials", 0, kMaxTrials, 0,
              "how many points are drawn; 0: every combination, of hyperband one round of its brackets"),
      choice("metric", epoch_metric_tags(), "Loss/validation",
             "what is best, at the last epoch of a trial; at its best epoch where that is kept"),
      choice("mode", {"min", "max"}, std::nullopt,
             "whether the smallest or the largest value is the best; default: max for accuracies, Number "
             "Correct and R2"),
      integer("seed", 0, kMaxExactInteger, 0, "start of the random numbers of the search"),
      integer(
          "at_once", 1, 1024, static_cast<std::int64_t>(SearchSpec().at_once),
          "of tpe, and with a target: trials that may be trained at once; each is chosen from the results "
          "of all before but so many, whatever --jobs is"),
      integer("min_epochs", 1, kMaxCount, SearchSpec().min_epochs,
              "of halving and hyperband: epochs before the first trials are ended"),
      integer("reduction", 2, 100, SearchSpec().reduction,
              "of halving and hyperband: one in so many goes on"),
      any_number("target", "once a trial has this value of the metric, no other is begun"),
      number("seconds", std::nullopt, true,
             "no other trial is begun once the trials have taken so long, the sum of their times"),
  };
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

std::span<const std::string> dataset_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const KnownDataset& known : known_datasets()) list.emplace_back(known.name);
    return list;
  }();
  return names;
}

}  // namespace sweep
