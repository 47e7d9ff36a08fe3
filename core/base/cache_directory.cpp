#include "core/base/cache_directory.h"

#include <cstdlib>

namespace sweep {

std::filesystem::path user_cache_directory() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache != '\0') return std::filesystem::path(cache) / "sweep";
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home != '\0') return std::filesystem::path(home) / ".cache" / "sweep";
  return {};
}

}  // namespace sweep
