#include "runmanager/records/event_file_sizes.h"

#include <fmt/format.h>

#include <system_error>
#include <vector>

#include "core/base/error.h"
#include "tbwriter/event_file_name.h"

namespace sweep {

std::map<std::string, std::uint64_t> event_file_sizes(const std::filesystem::path& run_directory) {
  std::map<std::string, std::uint64_t> sizes;
  for (const std::string& name : tbwriter::list_event_files(run_directory)) {
    if (!tbwriter::is_event_file_name(name)) continue;  // of another program
    std::error_code error;
    sizes[name] = std::filesystem::file_size(run_directory / name, error);
    if (error) throw IoError((run_directory / name).string() + ": cannot read its size: " + error.message());
  }
  return sizes;
}

std::string event_file_problem(const std::filesystem::path& run_directory, const RunRecord& record) {
  for (const auto& [name, bytes] : record.event_files) {
    std::error_code error;
    const std::uintmax_t size = std::filesystem::file_size(run_directory / name, error);
    if (error) return fmt::format("{} is missing", name);
    if (size < bytes) return fmt::format("{} has {} bytes instead of {}", name, size, bytes);
  }
  return "";
}

}  // namespace sweep
