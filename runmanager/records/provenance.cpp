#include "runmanager/records/provenance.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <spdlog/version.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>

#include "core/engine/device.h"
#include "runmanager/records/revision.h"  // made by the build

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

Json machine() {
  utsname system{};
  ::uname(&system);
  Json devices = Json::array();
  std::string processor;
  int cores = 0;
  std::uint64_t memory = 0;
  for (const DeviceInfo& device : list_devices()) {
    if (device.device.type == DeviceType::kCpu) {
      processor = device.description;
      cores = device.cores;
      memory = device.memory_bytes;
    }
    devices.push_back({{"device", device.device.name()},
                       {"description", device.description},
                       {"capability", device.capability},
                       {"software", device.software}});
  }
  return {{"host", system.nodename},
          {"system", fmt::format("{} {} {}", system.sysname, system.release, system.machine)},
          {"processor", processor},
          {"cores", cores},
          {"memory_bytes", memory},
          {"devices", std::move(devices)}};
}

Json libraries() {
  const auto dotted = [](int major, int minor, int patch) {
    return fmt::format("{}.{}.{}", major, minor, patch);
  };
  return {{"glibc", ::gnu_get_libc_version()},
          {"libstdc++", std::to_string(_GLIBCXX_RELEASE)},
          {"fmt", dotted(FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100)},
          {"spdlog", dotted(SPDLOG_VER_MAJOR, SPDLOG_VER_MINOR, SPDLOG_VER_PATCH)},
          {"nlohmann_json",
           dotted(NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH)}};
}

std::string working_directory() {
  std::error_code error;
  return std::filesystem::current_path(error).string();
}

}  // namespace

std::string utc_time() {
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  return fmt::format("{:%FT%TZ}", fmt::gmtime(std::chrono::system_clock::to_time_t(now)));
}

std::string program_version() { return SWEEP_VERSION; }
std::string program_revision() { return kSourceRevision; }

Json program_provenance(const std::vector<std::string>& command) {
  return {{"program", "sweep"},
          {"version", program_version()},
          {"revision", program_revision()},
          {"compiler", fmt::format("{} {}", SWEEP_COMPILER, __VERSION__)},
          {"libraries", libraries()},
          {"numerics", kNumericsVersion},
          {"started", utc_time()},
          {"machine", machine()},
          {"directory", working_directory()},
          {"command", shell_command(command)}};
}

Json dataset_provenance(const Dataset& dataset) {
  Json files = Json::array();
  for (const DataFile& file : dataset.files) {
    files.push_back({{"path", file.path.string()}, {"sha256", file.sha256}});
  }
  return {{"name", dataset.name},
          {"train", dataset.train.count},
          {"validation", dataset.validation.count},
          {"test", dataset.test.count},
          {"files", std::move(files)}};
}

std::string shell_command(const std::vector<std::string>& words) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%_+=:,./-";
  std::string command;
  for (const std::string& word : words) {
    if (!command.empty()) command += ' ';
    if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
      command += word;
      continue;
    }
    command += '\'';
    for (const char c : word) command += c == '\'' ? std::string("'\\''") : std::string(1, c);
    command += '\'';
  }
  return command;
}

}  // namespace sweep
