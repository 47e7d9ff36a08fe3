#include "runmanager/run_files.h"

#include <fmt/format.h>

#include "core/base/error.h"

namespace sweep {
namespace {

bool is_events_file(const std::filesystem::path& path) {
  return path.filename().string().find("tfevents") != std::string::npos;  // what TensorBoard looks for
}

}  // namespace

void prepare_run_directory(const std::filesystem::path& directory) {
  try {
    std::filesystem::create_directories(directory);
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
      const std::string name = entry.path().filename().string();
      const bool ours = is_events_file(entry.path()) || name == kRunRecordFile || name == kCheckpointFile ||
                        name == kLogFile;
      if (ours) std::filesystem::remove(entry.path());
    }
  } catch (const std::filesystem::filesystem_error& error) {
    throw IoError(fmt::format("{}: cannot prepare the run's directory: {}", directory.string(),
                              error.code().message()));
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

}  // namespace sweep
