// `sweep lr-find`: which learning rates a run can be trained with.
#include "runmanager/plan/lr_find.h"

#include <fmt/format.h>

#include <memory>

#include "core/base/error.h"
#include "core/base/printable.h"
#include "core/data/dataset.h"
#include "runmanager/config/data_check.h"
#include "runmanager/records/provenance.h"
#include "tools/commands/run_options.h"
#include "tools/output.h"

namespace sweep {
namespace {

struct LrFindArguments {
  SweepArguments sweep;
  LrFindOptions test;
  bool tensorboard = false;
  TableFormat format = TableFormat::kText;
};

// The first run whose device is there.
const RunConfig& choose_run(const Sweep& sweep) {
  std::optional<std::string> reason;
  for (const RunConfig& run : sweep.runs) {
    const Device device = parse_device(run.device);
    const std::optional<std::string> missing = unavailable_reason(device);
    if (!missing) return run;
    if (!reason) reason = device.name() + ": " + *missing;
  }
  throw DeviceError(
      fmt::format("{}: no run can be trained here: {}", sweep.file.string(), reason.value_or("")));
}

// If there are several runs, tells which one it is.
std::string run_text(const Sweep& sweep, const RunConfig& run) {
  if (sweep.runs.size() == 1) return "";
  return fmt::format("This is run {} of {}, {}; key=value chooses another.\n", run.index + 1,
                     sweep.runs.size(), run.name);
}

int find(const LrFindArguments& arguments) {
  const Sweep sweep = load_sweep(arguments.sweep);
  if (sweep.runs.front().command)
    throw ConfigError(sweep.file.string() + ": runs a program; the learning-rate test is for networks");
  const RunConfig& config = choose_run(sweep);
  PreparedRun run;
  run.config = &config;
  run.device = parse_device(config.device);
  run.data = std::make_shared<const Dataset>(load_dataset(config.dataset));
  check_against_data(config, sweep.file, sizes_of(*run.data));
  run.network = std::make_shared<const Network>(config.network, run.data->shape);
  if (!config.init.empty()) run.weights = load_weights(config.init, *run.network);
  const LrCurve curve = find_lr(run, arguments.test);
  constexpr int kPipeWidth = 80;
  nlohmann::ordered_json json = {{"sweep", sweep.name}, {"run", config.name}, {"device", run.device.name()}};
  json.update(lr_curve_json(curve));
  print_as(
      arguments.format, [&] { return json; },
      [&] {
        const int width = stdout_width() > 0 ? stdout_width() : kPipeWidth;
        return printable(run_text(sweep, config)) + lr_curve_text(curve, width, stdout_unicode());
      },
      [&] { return std::vector{lr_curve_table(curve)}; });
  if (arguments.tensorboard) {
    const std::filesystem::path directory = logdir_of(arguments.sweep) / (sweep.name + ".lr-find");
    write_lr_events(curve, directory);
    std::cerr << "To look at it: " << printable(shell_command({"tensorboard", "--logdir"}, directory))
              << std::endl;
  }
  return kExitDone;
}

}  // namespace

Command lr_find_command() {
  return {.name = "lr-find",
          .description = "train a run for a few batches with rising learning rates, and suggest one",
          .missing_argument = "a sweep file is needed: sweep lr-find SWEEP.json [key=value ...]",
          .add_to = command_with<LrFindArguments>(find, [](CLI::App& app, LrFindArguments& options) {
            add_sweep_arguments(app, options.sweep);
            const CLI::Validator rate = number_not_negative("a learning rate > 0");
            add_value(app, "--from LR", options.test.from, "learning rate of the first batch")
                ->check(rate)
                ->capture_default_str();
            add_value(app, "--to LR", options.test.to, "learning rate of the last batch")
                ->check(rate)
                ->capture_default_str();
            add_count(app, "--steps", options.test.steps, "batches", kMinLrSteps, kMaxLrSteps)
                ->capture_default_str();
            add_count(app, "--threads", options.test.threads, "CPU threads; 0: one per core", 0, 4096)
                ->capture_default_str();
            app.add_flag("--tensorboard", options.tensorboard,
                         "write the curve for TensorBoard, to LOGDIR/NAME.lr-find");
            add_logdir_option(app, options.sweep);
            app.get_option("--logdir")->needs("--tensorboard");
            add_format_option(app, options.format);
            add_format_flag(app, "csv", options.format);
          })};
}

}  // namespace sweep
