#include "runmanager/records/run_files.h"

#include <fmt/format.h>

#include "core/base/error.h"

namespace sweep {
namespace {

bool is_events_file(const std::filesystem::path& path) {
  return path.filename().string().find("tfevents") != std::string::npos;  // TensorBoard's criterion
}

// "run.json.4711.tmp": a name that write_file_atomically() makes.
bool is_temporary(const std::string& name) {
  if (!name.ends_with(".tmp")) return false;
  const auto begins = [&name](const char* file) { return name.starts_with(std::string(file) + "."); };
  return begins(kRunRecordFile) || begins(kCheckpointFile) || begins("sweep.json") || begins("results.csv") ||
         begins("results.json");
}

[[noreturn]] void throw_unprepared(const std::filesystem::path& directory,
                                   const std::filesystem::filesystem_error& error) {
  throw IoError(
      fmt::format("{}: cannot prepare the run's directory: {}", directory.string(), error.code().message()));
}

}  // namespace

void prepare_run_directory(const std::filesystem::path& directory) {
  try {
    std::filesystem::create_directories(directory);
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
      const std::string name = entry.path().filename().string();
      const bool ours = is_events_file(entry.path()) || name == kRunRecordFile || name == kCheckpointFile ||
                        name == kLogFile || is_temporary(name);
      if (ours) std::filesystem::remove(entry.path());
    }
  } catch (const std::filesystem::filesystem_error& error) {
    throw_unprepared(directory, error);
  }
}

void remove_temporaries(const std::filesystem::path& directory) {
  try {
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
      if (is_temporary(entry.path().filename().string())) std::filesystem::remove(entry.path());
    }
  } catch (const std::filesystem::filesystem_error& error) {
    throw_unprepared(directory, error);
  }
}

bool has_events(const std::filesystem::path& directory) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    if (is_events_file(entry.path())) return true;
  }
  return false;
}

std::string json_text(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string compact_json_text(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace sweep
