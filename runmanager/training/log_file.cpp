#include "runmanager/training/log_file.h"

#include <fmt/chrono.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string>

namespace sweep {

LogFile::LogFile(const std::filesystem::path& path, bool is_new)
    : file_(open_output_file(path, is_new ? OutputMode::kNew : OutputMode::kAppend)) {}

void LogFile::write(std::string_view level, std::string_view text) {
  using std::chrono::system_clock;
  const auto now = std::chrono::floor<std::chrono::milliseconds>(system_clock::now());
  const std::string line =
      fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03} {} {}\n", fmt::localtime(system_clock::to_time_t(now)),
                  now.time_since_epoch().count() % 1000, level, text);
  for (std::string_view rest = line; !rest.empty();) {
    const ssize_t written = ::write(file_.get(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace sweep
