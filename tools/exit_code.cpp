#include "tools/exit_code.h"

#include <filesystem>

#include "core/base/error.h"

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

}  // namespace sweep
