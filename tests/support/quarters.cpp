#include "tests/support/quarters.h"

#include <fmt/format.h>

#include "core/data/safetensors.h"
#include "runmanager/records/run_record_json.h"
#include "runmanager/sweepfile/sweep_file.h"
#include "tests/support/data_files.h"
#include "tests/support/event_files.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

void write_part(const fs::path& directory, const std::string& part, std::uint32_t count) {
  const auto label = [](std::uint32_t i) { return (i * 7 + i / 4) % 4; };
  test::write_idx_set(
      directory, part, count, 8,
      [&](std::uint32_t i, std::uint32_t y, std::uint32_t x) {
        return ((y / 4) * 2 + x / 4 == label(i) ? 160 : 20) + (i * 31 + y * 17 + x * 13) % 64;
      },
      label);
}

}  // namespace

void write_quarters(const fs::path& directory) {
  write_part(directory / "data", "train", 240);
  write_part(directory / "data", "t10k", 60);
  tbwriter::spill(directory / "quarters.json", R"({
    "name": "quarters",
    "dataset": {"name": "quarters", "path": "data", "validation": 40},
    "network": {"name": "net", "layers": [
      {"name": "conv1", "type": "conv2d", "out_channels": 4, "kernel_size": 3},
      {"name": "relu1", "type": "relu"},
      {"name": "pool1", "type": "max_pool2d", "kernel_size": 2},
      {"name": "flatten", "type": "flatten"},
      {"name": "drop", "type": "dropout", "p": 0.1},
      {"name": "out", "type": "linear", "out_features": 4}]},
    "optimizer": "adam", "epochs": 6, "seed": 3,
    "params": {"lr": [0.02], "batch_size": [20, 30], "num_workers": [0, 2]}})");
}

Quarters::Quarters() {
  write_quarters(directory_.path());
  environment_.terminal = {};
  environment_.terminal.write = [this](std::string_view text) { told_ += text; };
  environment_.out = &out_;
  environment_.stop_requested = [] { return 0; };
}

Sweep Quarters::sweep(const std::vector<std::string>& overrides) const {
  return load_sweep(directory_ / file_, overrides);
}

SweepOutcome Quarters::start(const std::string& logdir, const Sweep& sweep) {
  options_.logdir = directory_ / logdir;
  return run_sweep(sweep, options_, environment_);
}

SweepOutcome Quarters::run_stopping(int looks, const std::string& logdir, const Sweep& sweep) {
  const auto usual = std::exchange(environment_.stop_requested, [&looks] { return --looks < 0 ? 15 : 0; });
  SweepOutcome outcome = start(logdir, sweep);
  environment_.stop_requested = usual;
  return outcome;
}

fs::path run_directory(const SweepOutcome& sweep, std::size_t run) {
  return sweep.directory / sweep.runs.at(run).name;
}

std::string bits_of(const RunRecord& run, const fs::path& directory) {
  std::string bits = run.name + " " + std::string(to_string(run.status)) + "\n";
  bits += run.stop_reason + fmt::format(" {}\n", run.best_epoch.value_or(0));
  for (EpochRecord epoch : all_epochs(run)) {
    std::erase_if(epoch.values, [](const auto& value) { return value.first->part == MetricPart::kTime; });
    bits += to_json(epoch).dump() + "\n";
  }
  for (const auto& [name, value] : run.metrics) bits += name + fmt::format(" {:a}\n", value);
  for (const char* name : {"checkpoint.safetensors", "best.safetensors"}) {
    const fs::path file = directory / run.name / name;
    if (!fs::exists(file)) continue;
    bits += name;
    for (const NamedTensor& tensor : read_safetensors(file).tensors) {
      bits += tensor.name + std::string(reinterpret_cast<const char*>(tensor.values.data()),
                                        tensor.values.size() * sizeof(float));
    }
  }
  return bits;
}

std::string bits_of(const SweepOutcome& outcome) {
  std::string bits;
  for (const RunRecord& run : outcome.runs) bits += bits_of(run, outcome.directory);
  return bits;
}

}  // namespace sweep
