#include "runmanager/training/log_file.h"

#include <fmt/chrono.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string>

#include "core/base/error.h"
#include "runmanager/records/run_files.h"

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

std::string end_of_log(const std::filesystem::path& run_directory) {
  std::string text;
  try {
    text = read_file(run_directory / kLogFile);
  } catch (const DataError&) {
    return "";
  }
  while (!text.empty() && text.back() == '\n') text.pop_back();
  // A program may have written a long line.
  constexpr std::size_t kLinesShown = 3, kMaxShown = 2000;
  if (text.size() > kMaxShown) text = "…" + text.substr(text.size() - kMaxShown);
  std::size_t begin = text.size();
  for (std::size_t lines = 0; lines < kLinesShown && begin != std::string::npos && begin > 0; ++lines)
    begin = text.rfind('\n', begin - 1);
  begin = begin == std::string::npos ? 0 : begin;
  return text.empty() ? "" : "\nlog.txt ends with:\n" + text.substr(begin + (text[begin] == '\n'));
}

}  // namespace sweep
