// The tables themselves: one line per key.
#include "core/data/data_format.h"
#include "core/data/known_datasets.h"
#include "core/spec/placement.h"
#include "core/spec/precision.h"
#include "runmanager/config/settings.h"

namespace sweep {
namespace {

// Doubles hold every integer up to here, and so do all readers of JSON.
constexpr double kLargestInteger = 9007199254740992.0;
constexpr double kMost = 1e9;  // More epochs, repeats or samples than anybody means.

Setting integer(std::string name, double minimum, double maximum, std::int64_t value, std::string help,
                bool sweepable = true) {
  return {std::move(name), SettingKind::kInteger, minimum,  maximum, false, {},
          value,           std::move(help),       sweepable};
}

Setting boolean(std::string name, bool value, std::string help) {
  return {std::move(name), SettingKind::kBoolean, 0, 0, false, {}, value, std::move(help)};
}

std::vector<std::string> data_format_names() {
  std::vector<std::string> names;
  for (const DataFormat& format : data_formats()) names.emplace_back(format.name);
  return names;
}

Setting part(std::string name, SettingKind kind, std::string help, bool sweepable) {
  return {std::move(name), kind, 0, 0, false, {}, nullptr, std::move(help), sweepable};
}

Setting named(std::string name, SettingKind kind, std::string help) {
  return {std::move(name), kind, 0, 0, false, type_names(types_of(kind)), nullptr, std::move(help)};
}

}  // namespace

std::span<const Setting> file_settings() {
  static const std::vector<Setting> settings = {
      part("name", SettingKind::kName,
           "directory of the sweep below the log directory; default: the file's name", false),
      part("dataset", SettingKind::kDataset, "what to train on: a name, or an object", true),
      part("network", SettingKind::kNetwork, "a network file, relative to this one, or an object with layers",
           true),
      named("optimizer", SettingKind::kOptimizer, "a name, or an object with a name and PyTorch's arguments"),
      named("schedule", SettingKind::kSchedule,
            "how lr changes while training: a name, or an object with a name and PyTorch's arguments"),
      named("loss", SettingKind::kLoss,
            "what training makes small: a name, or an object with a name and PyTorch's arguments"),
      {"clip_norm",
       SettingKind::kNumber,
       0,
       kUnbounded,
       false,
       {},
       nullptr,
       "gradients longer than this, all parameters as one vector, are shortened to it; 0, the default: "
       "never"},
      integer("epochs", 1, kMost, 1, "passes over the training set"),
      integer("seed", 0, kLargestInteger, 0, "start of all random numbers: initial weights and sample order"),
      integer("repeats", 1, kMost, 1, "trainings of each combination, each with random numbers of its own",
              false),
      {"lr", SettingKind::kNumber, 0, kUnbounded, true, {}, 0.01, "learning rate"},
      integer("batch_size", 1, kMost, 100,
              "samples per optimizer step; the last batch of an epoch may be shorter"),
      boolean("shuffle", true, "whether every epoch visits the samples in a new order"),
      integer("num_workers", 0, 1024, 0,
              "threads that prepare batches ahead; 0: the training thread does it"),
      {"device",
       SettingKind::kDevice,
       0,
       0,
       false,
       {},
       "auto",
       "where to train; auto: CUDA if there is one, else the CPU"},
      {"precision",
       SettingKind::kChoice,
       0,
       0,
       false,
       {precision_names().begin(), precision_names().end()},
       precision_name(Precision::kFp32),
       "bf16: conv2d and linear round their factors to bf16, sums and all else stay fp32; only on CPUs that "
       "have it"},
      boolean(
          "deterministic", true,
          "false: on CUDA, libraries may add up in any order where that is faster; the same run then gives "
          "other last bits each time. Nothing on the CPU"),
      part("init", SettingKind::kPath, "safetensors file of weights to start from, relative to this file",
           true),
      part("log", SettingKind::kLog, "what is logged besides the scalars", true),
      part("params", SettingKind::kAxes, "the axes: key, and the list of values to try", false),
      part("zip", SettingKind::kZip, "lists of keys of axes that advance together", false),
      part("exclude", SettingKind::kExclude, "combinations to leave out", false),
      part("when", SettingKind::kWhen, "axes that only exist where other keys have certain values", false),
      part("grids", SettingKind::kGrids,
           "several sets of axes, each combined with params; all their runs together", false),
      part("$schema", SettingKind::kAnything, "for editors; ignored", false),
  };
  return settings;
}

std::span<const Setting> dataset_settings() {
  static const std::vector<std::string> formats = data_format_names();
  static const std::vector<Setting> settings = {
      part("name", SettingKind::kName, listed(dataset_names()) + ", or any name with a path", true),
      part("path", SettingKind::kPath, "directory of the files, relative to this file", true),
      {"format", SettingKind::kChoice, 0, 0, false, formats, formats.front(), "how the files are written"},
      {"validation",
       SettingKind::kCountOrFraction,
       0,
       kMost,
       false,
       {},
       0,
       "samples, or fraction, of the end of the training set that is kept for validation"},
      integer("limit", 0, kMost, 0, "use only the first so many samples; 0: all"),
      {"placement",
       SettingKind::kChoice,
       0,
       0,
       false,
       {placement_names().begin(), placement_names().end()},
       placement_name(Placement::kAuto),
       "where a GPU reads the samples from: its own memory, or batches that num_workers threads gather and "
       "copy; "
       "auto: its own if they fit. The same on the CPU"},
      part("normalize", SettingKind::kAnything, "mean and std per channel: x = (byte / 255 - mean) / std",
           true),
  };
  return settings;
}

std::span<const Setting> log_settings() {
  static const std::vector<Setting> settings = {
      integer("images", 0, 4096, 64, "samples of the first batch that are shown; 0: none"),
      boolean("graph", true, "the network as a graph"),
      boolean("histograms", true, "every parameter and gradient, per epoch"),
      boolean("hparams", true, "the table of hyperparameters and metrics"),
      boolean("text", true, "configuration and provenance"),
      boolean("layout", true, "the custom scalars dashboard"),
      boolean("predictions", true,
              "PR curves, confusion matrix and misclassified samples at the end of a run"),
      integer("batches", 0, kMost, 0, "loss and accuracy every so many batches; 0: never"),
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

Setting to_setting(const ArgumentType& type) {
  Setting setting{type.name, SettingKind::kBoolean, type.minimum, type.maximum, type.exclusive, {}, nullptr,
                  type.help};
  switch (type.kind) {
    case ArgumentKind::kBoolean:
      break;
    case ArgumentKind::kInteger:
      setting.kind = SettingKind::kInteger;
      break;
    case ArgumentKind::kIntegerPair:
      setting.kind = SettingKind::kIntegerPair;
      break;
    case ArgumentKind::kNumber:
      setting.kind = SettingKind::kNumber;
      break;
    case ArgumentKind::kNumberPair:
      setting.kind = SettingKind::kNumberPair;
      break;
    case ArgumentKind::kChoice:
      setting.kind = SettingKind::kChoice;
      setting.choices = type.choices;
      break;
  }
  if (type.default_value)
    std::visit([&](const auto& value) { setting.default_value = value; }, *type.default_value);
  return setting;
}

}  // namespace sweep
