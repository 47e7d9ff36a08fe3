// `sweep devices`: prints what this machine can train on, and what it lacks.
#include "core/engine/device.h"

#include <fmt/format.h>

#include "runmanager/plan/plan.h"
#include "tools/output.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

/// The devices and libraries of this machine, and why others are missing.
struct Machine {
  std::vector<DeviceInfo> devices = list_devices();
  std::vector<LibraryInfo> libraries = list_libraries();
  std::optional<std::string> cuda_reason = cuda_unavailable_reason();
};

Json null_if_empty(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json to_json(const Machine& machine) {
  Json json = {{"devices", Json::array()}};
  for (const DeviceInfo& info : machine.devices) {
    json["devices"].push_back({{"name", info.device.name()},
                               {"description", info.description},
                               {"memory_bytes", info.memory_bytes},
                               {"cores", info.cores},
                               {"capability", info.capability},
                               {"software", info.software}});
  }
  json["libraries"] = Json::array();
  for (const LibraryInfo& library : machine.libraries) {
    json["libraries"].push_back({{"name", library.name},
                                 {"use", library.use},
                                 {"version", null_if_empty(library.version)},
                                 {"path", null_if_empty(library.path)},
                                 {"problem", null_if_empty(library.problem)}});
  }
  json["cuda_unavailable"] = null_if_empty(machine.cuda_reason.value_or(""));
  return json;
}

void print_text(const Machine& machine) {
  for (const DeviceInfo& info : machine.devices) {
    const bool cpu = info.device.type == DeviceType::kCpu;
    std::cout << fmt::format(
        "{:<7} {}, {}, {} {}{}, {}\n", info.device.name(), info.description, bytes_text(info.memory_bytes),
        info.cores, cpu ? (info.cores == 1 ? "thread" : "threads") : "multiprocessors",
        info.capability.empty() ? "" : (cpu ? ", " : ", compute capability ") + info.capability,
        info.software);
  }
  if (machine.cuda_reason) std::cout << fmt::format("cuda    cannot be used: {}\n", *machine.cuda_reason);
  for (const LibraryInfo& library : machine.libraries) {
    if (library.problem.empty()) {
      std::cout << fmt::format("{} {}, for {}{}\n", library.name, library.version, library.use,
                               library.path.empty() ? "" : ": " + library.path);
    } else {
      std::cout << fmt::format("{} is not used, own kernels do {}: {}\n", library.name, library.use,
                               library.problem);
    }
  }
}

int print_devices(const bool& as_json) {
  const Machine machine;
  if (as_json) {
    print_json(to_json(machine));
  } else {
    print_text(machine);
  }
  return kExitDone;
}

}  // namespace

Command devices_command() {
  return {.name = "devices",
          .description = "print what there is to train on",
          .add_to = command_with<bool>(print_devices, [](CLI::App& app, bool& as_json) {
            app.add_flag("--json", as_json, "as JSON");
          })};
}

}  // namespace sweep
