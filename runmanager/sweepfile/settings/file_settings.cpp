// The tables themselves: one row per key of the file.
#include "core/spec/loss.h"
#include "core/spec/optimizer.h"
#include "core/spec/schedule.h"
#include "runmanager/config/run_config.h"
#include "runmanager/sweepfile/settings/setting_rows.h"
#include "runmanager/sweepfile/settings/settings.h"
#include "runmanager/sweepfile/slurm/slurm_reader.h"

namespace sweep {

using namespace rows;  // NOLINT(google-build-using-namespace): a table of nothing but rows.
using Json = nlohmann::ordered_json;

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
              "samples per optimizer step; the last batch of an epoch may be shorter; left out: 100, or all "
              "if there "
              "are fewer"),
      boolean("shuffle", true, "whether every epoch visits the samples in a new order"),
      integer("num_workers", 0, 1024, 0,
              "threads that prepare batches ahead; 0: the training thread does it"),
      device("device", "auto", "where to train; auto: CUDA if there is one, else the CPU"),
      choice("precision", {"fp32"}, "fp32", "of earlier versions; leave it out"),
      boolean(
          "deterministic", true,
          "false: on CUDA, libraries may add up in any order where that is faster; the same run then gives "
          "other last bits each time. Nothing on the CPU"),
      custom("parallel", "none, or how several devices train one network", true,
             {.schema = {{"anyOf", Json::array({Json{{"const", "none"}}, definition("parallel")})}},
              .has_parts = true,
              .settings = parallel_settings}),
      integer(
          "accumulate", 1, kMaxCount, 1,
          "parts that each batch is trained in, one after another, to take less memory; the optimizer takes "
          "one step with their mean"),
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
      custom("slurm", "what the sweep asks of a cluster, for --launcher slurm", false,
             {.schema = definition("slurm"), .has_parts = true, .settings = slurm_settings}),
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

}  // namespace sweep
