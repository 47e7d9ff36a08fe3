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

}  // namespace

int exit_code(const std::exception& error) {
  for (const Row& row : kTable) {
    if (row.matches(error)) return row.code;
  }
  return kExitFailed;
}

}  // namespace sweep
