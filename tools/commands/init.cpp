// `sweep init`: writes a sweep file and a network to start from; and `sweep schema`: prints what such files
// may have.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/printable.h"
#include "runmanager/records/provenance.h"
#include "runmanager/sweepfile/sweep_file.h"
#include "tools/output.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

// {} is the network's file.
constexpr std::string_view kSweepText = R"(// Trains one network per combination of the values in "params".
//   sweep plan FILE          prints the runs without training
//   sweep FILE               trains them; the same command goes on where it was
//   sweep FILE lr=0.1        replaces values for once
//   tensorboard --logdir runs
{{
  // A known set by its name (mnist, cifar10, …: "sweep data get NAME" downloads it), or files of your own:
  //   {{"name": "pets", "path": "pictures", "resize": [64, 64]}}   a folder per class
  //   {{"name": "wine", "path": "wine.csv", "target": "quality"}}  a table
  // "validation" holds out a number or a fraction of samples, which are measured after every epoch.
  "dataset": {{"name": "fashion-mnist", "validation": 10000}},

  "network": {},
  "loss": "cross_entropy",  // for classes; mse, l1, smooth_l1 or bce_with_logits if targets are numbers
  "epochs": 5,
  "seed": 1,
  // "repeats": 3,          // of every combination, each with its own random numbers: mean and deviation

  // Every combination is a run. Most keys of this file can be here, also parts of them by a dotted path.
  "params": {{
    "optimizer": ["adam", "sgd"],
    "lr": [0.01, 0.001],  // or {{"logspace": [0.0001, 0.1, 4]}}
    "batch_size": [100],
    // "network.layers.conv1.out_channels": [6, 12],
    "device": ["auto"],   // cuda if there is one; ["cuda", "cpu"] compares them
  }},
}}
)";

constexpr std::string_view kNetworkText =
    R"(// Layers, one after the other. Sizes of inputs follow from the data.
// The types: conv2d linear relu tanh sigmoid gelu silu leaky_relu max_pool2d avg_pool2d adaptive_avg_pool2d
// batch_norm2d dropout flatten residual sequential, with PyTorch's names for their arguments.
{
  "name": "cnn",
  "layers": [
    {"name": "conv1", "type": "conv2d", "out_channels": 6, "kernel_size": 5},
    {"name": "relu1", "type": "relu"},
    {"name": "pool1", "type": "max_pool2d", "kernel_size": 2},
    {"name": "conv2", "type": "conv2d", "out_channels": 12, "kernel_size": 5},
    {"name": "relu2", "type": "relu"},
    {"name": "pool2", "type": "max_pool2d", "kernel_size": 2},
    {"name": "flatten", "type": "flatten"},
    {"name": "fc1", "type": "linear", "out_features": 120},
    {"name": "relu3", "type": "relu"},
    {"name": "out", "type": "linear", "out_features": 10},  // as many as there are classes
  ],
}
)";

void refuse_existing(const fs::path& file) {
  std::error_code ignored;
  if (fs::exists(fs::symlink_status(file, ignored)))
    throw ConfigError(fmt::format(
        "{}: is there already and is not replaced; give another name: sweep init FILE", file.string()));
}

int init(const fs::path& file) {
  if (file.extension() != ".json")
    throw ConfigError(fmt::format("{}: want a name that ends in .json", file.string()));
  const fs::path network = fs::path(file).replace_filename(file.stem().string() + "-network.json");
  if (const fs::path folder = file.parent_path(); !folder.empty() && !fs::is_directory(folder))
    throw IoError(fmt::format("{}: there is no directory {}", file.string(), folder.string()));
  refuse_existing(file);
  refuse_existing(network);
  write_file_atomically(network, kNetworkText);
  write_file_atomically(file, fmt::format(kSweepText, nlohmann::json(network.filename().string()).dump()));
  std::cout << printable(fmt::format("{} and {} are written; try: {}\n", file.string(), network.string(),
                                     shell_command({typed_program(), "plan"}, file)));
  return kExitDone;
}

}  // namespace

Command init_command() {
  return {.name = "init",
          .description = "write a sweep file and a network to start from, with comments",
          .add_to = command_with<fs::path>(init, [](CLI::App& app, fs::path& file) {
            file = "sweep.json";
            add_value(app, "file FILE", file, "the sweep file; the network goes next to it")
                ->capture_default_str();
          })};
}

Command schema_command() {
  return {.name = "schema",
          .description = "print the JSON schema of sweep files",
          .add_to = [](CLI::App&) -> CommandAction {
            return [](const auto&) {
              print_json(sweep_schema());
              return kExitDone;
            };
          }};
}

}  // namespace sweep
