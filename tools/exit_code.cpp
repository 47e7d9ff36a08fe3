#include "tools/exit_code.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "core/base/error.h"
#include "runmanager/text/json_document.h"

namespace sweep {
namespace {

template <typename E>
bool is(const std::exception& error) {
  return dynamic_cast<const E*>(&error) != nullptr;
}

struct Row {
  bool (*matches)(const std::exception&);
  int code;
};

constexpr Row kTable[] = {
    {is<ConfigError>, kExitBadInput},  // Also ShapeError, which is derived from it.
    {is<DataError>, kExitBadInput},
    {is<IoError>, kExitUnwritable},
    {is<std::filesystem::filesystem_error>, kExitUnwritable},
};

constexpr ExitCode kCodes[] = {
    {"0", "all runs are done or skipped"},
    {"1", "a run failed, or memory ran out"},
    {"2", "a mistake in command line, sweep file or data"},
    {"3", "output cannot be written, or is held by another sweep"},
    {"75", "stopped by SIGUSR1, SIGUSR2 or --max-time: run the same command again"},
    {"129, 130, 143", "interrupted by SIGHUP, SIGINT or SIGTERM"}};

}  // namespace

std::span<const ExitCode> exit_codes() { return kCodes; }

int exit_code(const std::exception& error) {
  for (const Row& row : kTable) {
    if (row.matches(error)) return row.code;
  }
  return kExitFailed;
}

std::string message_of(const std::exception& error) {
  const auto* of_path = dynamic_cast<const std::filesystem::filesystem_error*>(&error);
  if (of_path == nullptr) return error.what();
  constexpr std::size_t kMaxShownPath = 200;
  const bool is_long = of_path->code() == std::errc::filename_too_long;
  return fmt::format("{}: {}{}", shown_text(of_path->path1().string(), kMaxShownPath),
                     of_path->code().message(),
                     is_long ? ", want a path whose parts have at most 255 bytes each" : "");
}

}  // namespace sweep
