// The tables themselves: one row per key of the file.
#include <fmt/format.h>

#include <string_view>

#include "core/base/error.h"
#include "core/engine/device.h"
#include "core/network/loss.h"
#include "core/network/optimizer.h"
#include "core/network/schedule.h"
#include "runmanager/config/run_config.h"
#include "runmanager/sweepfile/settings/settings.h"

namespace sweep {

using namespace rows;  // NOLINT(google-build-using-namespace): a table of nothing but rows.
using Json = nlohmann::ordered_json;

namespace {

// Reports values that are good alone, but not together: nesterov without momentum.
template <typename Make>
void check_combination(const JsonView& node, const std::string& key, const Make& make, Problems& problems) {
  try {
    make();
  } catch (const ConfigError& error) {
    std::string_view message = error.what();
    if (message.starts_with(key + ": "))
      message.remove_prefix(key.size() + 2);  // The location says so already.
    problems.add(node, message);
  }
}

Json complete_optimizer(const Setting& row, const Given& given) {
  const Json json = complete_plain(row, given);
  if (given.value && !json.is_null())
    check_combination(
        given.value, "optimizer", [&] { optimizer_of(json); }, given.problems);
  return json;
}

Json complete_schedule(const Setting& row, const Given& given) {
  static const std::string warmup_keys[] = {"name", "then"};
  const bool is_warmup = given.value.find("name").text() == "warmup";
  Json json = is_warmup ? complete_named(given.value, schedule_types(), warmup_keys, given.problems)
                        : complete_plain(row, given);
  if (const JsonView then = is_warmup ? given.value.find("then") : JsonView()) {
    const Json next =
        complete_named(then, schedule_types_after_warmup(), std::span(warmup_keys, 1), given.problems);
    if (!json.is_null()) json = next.is_null() ? Json() : (json["then"] = next, json);
  }
  if (given.value && !json.is_null())
    check_combination(
        given.value, "schedule", [&] { schedule_of(json); }, given.problems);
  return json;
}

// "cuda:7" on a machine with one CUDA device is a mistake. Any CUDA device on a machine without one is not:
// the file may come from another machine, and the run is skipped.
Json complete_device(const Setting& row, const Given& given) {
  const Json device = complete_plain(row, given);
  if (given.value.text().starts_with("cpu:") && device == given.value.text())
    return "cpu";  // It has all cores.
  const int count = given.context.cuda_device_count;
  if (!given.value || device != given.value.text() || !given.value.text().starts_with("cuda:") ||
      count == 0 || parse_device(given.value.text()).index < count)
    return device;
  const std::string found =
      count == 1 ? "this machine has one CUDA device, want cuda or cuda:0"
                 : fmt::format("this machine has {} CUDA devices, want cuda:0 to cuda:{}", count, count - 1);
  given.problems.add(given.value, fmt::format("got {}, but {}", describe(given.value), found));
  return device;
}

// A key of earlier versions, which also had "bf16". It is accepted as long as it changes nothing, and not
// recorded.
Json complete_precision(const Setting&, const Given& given) {
  if (given.value && *given.value != "fp32")
    given.problems.add_value(given.value, "fp32: bf16 was no faster and is gone; leave the key out");
  return nullptr;
}

}  // namespace

std::span<const Setting> top_level_settings() {
  static const std::vector<Setting> settings = {
      directory_name("name", "directory of the sweep below the log directory; default: the file's name")
          .not_swept(),
      dataset(),
      network(),
      named("optimizer", optimizer_types(), "a name, or an object with a name and PyTorch's arguments")
          .completed_by(complete_optimizer),
      named("schedule", schedule_types(),
            "how lr changes while training: a name, or an object with a name and PyTorch's arguments")
          .completed_by(complete_schedule),
      named("loss", loss_types(),
            "what training minimizes: a name, or an object with a name and PyTorch's arguments"),
      number("clip_norm", 0.0, false, "max norm of the gradient of all parameters together; 0: no limit")
          .unless_default(),
      integer("epochs", 1, kMaxCount, 1, "passes over the training set").compared_apart(),
      boolean("evaluate_first", false,
              "whether the untrained network is also evaluated on the validation set, as epoch 0")
          .of_times(),
      integer("seed", 0, kMaxExactInteger, 0, "seed of all random numbers: initial weights, sample order"),
      integer("repeats", 1, kMaxCount, 1, "trainings of each combination, with different random numbers")
          .not_swept(),
      number("lr", 0.01, true, "learning rate"),
      integer("batch_size", 1, kMaxCount, 100,
              "samples per optimizer step; the last batch of an epoch may be smaller; by default 100, or all "
              "if there are fewer"),
      boolean("shuffle", true, "whether each epoch visits the samples in a new order"),
      integer("num_workers", 0, 1024, 0, "threads that prepare batches ahead; 0: the training thread does it")
          .of_times(),
      device("device", "auto", "where to train; auto: CUDA if there is one, else the CPU")
          .compared_apart()
          .completed_by(complete_device),
      choice("precision", {"fp32"}, "fp32", "kept for files of earlier versions; leave it out")
          .completed_by(complete_precision)
          .hidden(),
      boolean("deterministic", true,
              "false: on CUDA, libraries may add in any order if that is faster; the last bits then differ "
              "from run to run. No effect on the CPU"),
      parallel(),
      integer(
          "accumulate", 1, kMaxCount, 1,
          "parts that each batch is trained in, one after another, to use less memory; the optimizer takes "
          "one step with their mean"),
      stop(false),
      choice("checkpoint", {kKeepLast, kKeepBest}, kKeepLast,
             "best: also keep the weights of the best epoch, in best.safetensors; by the metric of stop, or "
             "else the loss")
          .of_times(),
      path("init", "safetensors file of weights to start from, relative to this file").compared_apart(),
      log(),
      custom("params", definition("axes"), "the axes: keys, each with the values to try").not_swept(),
      search(false),
      slurm(),
      custom("zip", list_of(list_of({{"type", "string"}}, {.minimum = 2})),
             "lists of axes that advance together")
          .not_swept(),
      custom("exclude", list_of(definition("conditions")), "combinations to leave out").not_swept(),
      custom("when", {{"type", "object"}, {"additionalProperties", definition("conditions")}},
             "axes that only exist where other keys have certain values")
          .not_swept(),
      custom("grids", list_of(definition("axes"), {.minimum = 1}),
             "sets of axes, each combined with params; the sweep is their union")
          .not_swept(),
      custom("$schema", {}, "for editors; ignored").not_swept().hidden(),
  };
  return settings;
}

}  // namespace sweep
