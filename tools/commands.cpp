#include "tools/commands.h"

#include <fmt/format.h>

#include <iostream>

#include "core/data/dataset.h"
#include "core/engine/device.h"
#include "runmanager/config/plan.h"
#include "runmanager/config/schema.h"
#include "tools/exit_code.h"

namespace sweep {
namespace {

// Text from a file may hold bytes that are not UTF-8; JSON must not.
std::string dumped(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

DataSizes sizes_of(const DatasetSpec& spec) {
  if (const auto known = known_data_sizes(spec)) return *known;
  const Dataset data = load_dataset(spec);
  return {data.shape, data.class_names.size(), data.train.count};
}

std::string gibibytes(std::uint64_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1024.0 * 1024 * 1024));
}

nlohmann::ordered_json or_null(const std::optional<std::string>& text) {
  return text ? nlohmann::ordered_json(*text) : nlohmann::ordered_json(nullptr);
}

nlohmann::ordered_json names_of(const std::vector<Precision>& precisions) {
  auto names = nlohmann::ordered_json::array();
  for (const Precision precision : precisions) names.push_back(precision_name(precision));
  return names;
}

void print_devices_json(const std::vector<DeviceInfo>& devices, const std::optional<std::string>& cuda_reason,
                        const std::optional<std::string>& bf16_reason) {
  nlohmann::ordered_json json = {{"devices", nlohmann::ordered_json::array()}};
  for (const DeviceInfo& info : devices) {
    json["devices"].push_back({{"name", info.device.name()},
                               {"description", info.description},
                               {"memory_bytes", info.memory_bytes},
                               {"cores", info.cores},
                               {"capability", info.capability},
                               {"software", info.software},
                               {"precisions", names_of(info.precisions)}});
  }
  json["libraries"] = nlohmann::ordered_json::array();
  const auto text_or_null = [](const std::string& text) {
    return or_null(text.empty() ? std::nullopt : std::optional(text));
  };
  for (const LibraryInfo& library : list_libraries()) {
    json["libraries"].push_back({{"name", library.name},
                                 {"use", library.use},
                                 {"version", text_or_null(library.version)},
                                 {"path", text_or_null(library.path)},
                                 {"problem", text_or_null(library.problem)}});
  }
  json["cuda_unavailable"] = or_null(cuda_reason);
  json["bf16_unavailable"] = or_null(bf16_reason);
  std::cout << dumped(json);
}

}  // namespace

int run_command(const CommandLine& line) {
  const Sweep sweep = load_sweep(line.file, line.overrides, line.load);
  RunnerOptions options = line.runner;
  options.json = line.json;
  SweepEnvironment environment;
  environment.worker_command = {"/proc/self/exe", "worker"};
  return run_sweep(sweep, options, environment).exit_code;
}

int plan_command(const CommandLine& line) {
  const Sweep sweep = load_sweep(line.file, line.overrides, line.load);
  check_against_data(sweep, sizes_of);
  const SweepPlan plan = make_plan(sweep, sizes_of, unavailable_reason);
  std::cout << (line.json ? dumped(plan_json(plan)) : plan_text(plan));
  return kExitDone;
}

int devices_command(const CommandLine& line) {
  const std::vector<DeviceInfo> devices = list_devices();
  const std::optional<std::string> cuda_reason = cuda_unavailable_reason(),
                                   bf16_reason = bf16_unavailable_reason();
  if (line.json) {
    print_devices_json(devices, cuda_reason, bf16_reason);
    return kExitDone;
  }
  for (const DeviceInfo& info : devices) {
    const bool cpu = info.device.type == DeviceType::kCpu;
    std::cout << fmt::format(
        "{:<7} {}, {}, {} {}{}{}, {}\n", info.device.name(), info.description, gibibytes(info.memory_bytes),
        info.cores, cpu ? (info.cores == 1 ? "thread" : "threads") : "multiprocessors",
        info.capability.empty() ? "" : (cpu ? ", " : ", compute capability ") + info.capability,
        info.precisions.size() > 1 ? ", bf16" : "", info.software);
  }
  if (cuda_reason) std::cout << fmt::format("cuda    cannot be used: {}\n", *cuda_reason);
  for (const LibraryInfo& library : list_libraries()) {
    if (library.problem.empty()) {
      std::cout << fmt::format("{} {}, for {}{}\n", library.name, library.version, library.use,
                               library.path.empty() ? "" : ": " + library.path);
    } else {
      std::cout << fmt::format("{} is not used, own kernels do {}: {}\n", library.name, library.use,
                               library.problem);
    }
  }
  if (bf16_reason) std::cout << fmt::format("{}\n", *bf16_reason);
  return kExitDone;
}

int schema_command(const CommandLine&) {
  std::cout << dumped(sweep_schema());
  return kExitDone;
}

}  // namespace sweep
