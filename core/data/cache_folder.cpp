#include "core/data/cache_folder.h"

#include <cstdlib>
#include <string>
#include <string_view>
#include <system_error>

#include "core/base/error.h"
#include "core/data/readers/input_file.h"

namespace sweep {

namespace fs = std::filesystem;

fs::path user_cache_directory() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && fs::path(cache).is_absolute()) return fs::path(cache) / "sweep";
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home != '\0') return fs::path(home) / ".cache" / "sweep";
  return {};
}

fs::path decoded_cache() {
  const char* size = std::getenv("SWEEP_CACHE_SIZE");
  const fs::path folder = user_cache_directory();
  if (folder.empty() || (size != nullptr && std::string_view(size) == "0")) return {};
  return folder / "decoded";
}

CleanedCache clean_cache(const fs::path& folder) {
  CleanedCache cleaned;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    // "X.samples", and "X.samples.Y.tmp" of a writer that was killed.
    const std::string name = it->path().filename().string();
    const bool is_leftover = name.ends_with(".tmp") && name.find(".samples.") != std::string::npos;
    if (!name.ends_with(".samples") && !is_leftover) continue;
    std::error_code failed;  // or gone: another process may clean up as well
    const std::uintmax_t bytes = it->file_size(failed);
    if (!failed && fs::remove(it->path(), failed)) {
      ++cleaned.files;
      cleaned.bytes += bytes;
    }
    if (failed && failed != std::errc::no_such_file_or_directory)
      refuse<IoError>(it->path(), "cannot remove: {}", failed.message());
  }
  return cleaned;
}

}  // namespace sweep
