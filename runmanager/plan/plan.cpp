#include "runmanager/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/network/network.h"
#include "runmanager/config/run_name.h"

namespace sweep {
namespace {

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::array<const char*, 4> kUnits = {"B", "KiB", "MiB", "GiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

nlohmann::ordered_json params_json(const Params& params) {
  auto json = nlohmann::ordered_json::object();
  for (const auto& [key, value] : params) std::visit([&, &k = key](const auto& v) { json[k] = v; }, value);
  return json;
}

}  // namespace

SweepPlan make_plan(const Sweep& sweep, const std::function<DataSizes(const DatasetSpec&)>& sizes_of,
                    const std::function<std::optional<std::string>(const Device&, Precision)>& unavailable) {
  SweepPlan plan{sweep.name, {}, sweep.excluded};
  for (const RunConfig& run : sweep.runs) {
    const DataSizes sizes = sizes_of(run.dataset);
    const Network network(run.network, sizes.shape);
    const Device device = parse_device(run.device);
    PlannedRun planned{run.name, run.params, device.name(), unavailable(device, run.precision)};
    planned.train_samples = sizes.train;
    planned.steps_per_epoch = (sizes.train + run.batch_size - 1) / run.batch_size;
    planned.parameter_count = network.parameter_count();
    const OptimizerOptions optimizer =
        scheduled_optimizer(resolve_optimizer(run.optimizer), resolve_schedule(run.schedule));
    // Weights and gradients, and what the optimizer keeps: arrays of one float per parameter each.
    const std::uint64_t arrays = 2 + state_names(optimizer).size();
    planned.memory_bytes = arrays * sizeof(float) * network.parameter_count();
    planned.training_flops = network.training_flops() * static_cast<double>(sizes.train);
    plan.runs.push_back(std::move(planned));
  }
  return plan;
}

nlohmann::ordered_json plan_json(const SweepPlan& plan) {
  nlohmann::ordered_json json = {{"sweep", plan.name},
                                 {"runs", nlohmann::ordered_json::array()},
                                 {"excluded", nlohmann::ordered_json::array()}};
  for (const PlannedRun& run : plan.runs) {
    nlohmann::ordered_json entry = {
        {"name", run.name}, {"params", params_json(run.params)}, {"device", run.device}};
    entry["skip"] = run.skip ? nlohmann::ordered_json(*run.skip) : nlohmann::ordered_json(nullptr);
    entry["fate"] = run.fate;
    if (!run.note.empty()) entry["note"] = run.note;
    entry["train_samples"] = run.train_samples;
    entry["steps_per_epoch"] = run.steps_per_epoch;
    entry["parameters"] = run.parameter_count;
    entry["memory_bytes"] = run.memory_bytes;
    entry["training_flops"] = run.training_flops;
    json["runs"].push_back(std::move(entry));
  }
  for (const ExcludedRun& run : plan.excluded) {
    json["excluded"].push_back(
        {{"name", run_name(run.params)}, {"params", params_json(run.params)}, {"reason", run.reason}});
  }
  return json;
}

namespace {

// A run that is kept needs no device, so it says nothing of one that is missing.
std::string note_of(const PlannedRun& run) {
  if (run.skip && run.fate != "kept") return "skipped: " + *run.skip;
  if (run.fate == "new") return run.note;
  return run.note.empty() ? run.fate : fmt::format("{}: {}", run.fate, run.note);
}

// "3 kept, 1 continued, 2 new": nothing if all are new.
std::string fates_text(const SweepPlan& plan) {
  std::string text;
  for (const char* fate : {"kept", "continued", "new", "in the way"}) {
    const auto count = std::count_if(plan.runs.begin(), plan.runs.end(),
                                     [&](const PlannedRun& run) { return run.fate == fate; });
    if (count == static_cast<std::ptrdiff_t>(plan.runs.size()) && std::string_view(fate) == "new") return "";
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, fate);
  }
  return text;
}

}  // namespace

std::string plan_text(const SweepPlan& plan) {
  std::size_t width = 3;
  for (const PlannedRun& run : plan.runs) width = std::max(width, run.name.size());
  std::string text = fmt::format("{:<{}}  {:<7}  {:>10}  {:>9}  {:>11}  note\n", "run", width, "device",
                                 "parameters", "memory", "steps/epoch");
  std::size_t skipped = 0;
  for (const PlannedRun& run : plan.runs) {
    const std::string note = note_of(run);
    skipped += run.skip && run.fate != "kept" ? 1 : 0;
    std::string line =
        fmt::format("{:<{}}  {:<7}  {:>10}  {:>9}  {:>11}  {}", run.name, width, run.device,
                    run.parameter_count, bytes_text(run.memory_bytes), run.steps_per_epoch, note);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  for (const ExcludedRun& run : plan.excluded)
    text += fmt::format("left out: {} ({})\n", run_name(run.params), run.reason);
  text += fmt::format("{}: {} run{}", plan.name, plan.runs.size(), plan.runs.size() == 1 ? "" : "s");
  if (const std::string fates = fates_text(plan); !fates.empty()) text += ": " + fates;
  if (skipped > 0) text += fmt::format(", {} of them skipped", skipped);
  if (!plan.excluded.empty()) text += fmt::format(", {} left out", plan.excluded.size());
  return text + "\n";
}

}  // namespace sweep
