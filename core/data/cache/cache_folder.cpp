#include "core/data/cache/cache_folder.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <system_error>
#include <vector>

#include "core/base/cache_directory.h"
#include "core/base/error.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kDefaultBytes = 20'000'000'000;

std::uint64_t parse_size(std::string_view text) {
  const std::string_view units = "KMGT";
  std::uint64_t value = 0, unit = 1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const std::size_t power = rest.empty() ? 0 : units.find(rest.front());
  if (!rest.empty() && power != std::string_view::npos) {
    for (std::size_t i = 0; i <= power; ++i) unit *= 1000;
    rest.remove_prefix(1);
  }
  if (error != std::errc() || !rest.empty() || __builtin_mul_overflow(value, unit, &value)) {
    throw ConfigError("SWEEP_CACHE_SIZE: got \"" + std::string(text) +
                      "\", want a number of bytes such as 500M or 20G; 0 keeps nothing");
  }
  return value;
}

struct CachedFile {
  fs::path path;
  std::uint64_t bytes;
  fs::file_time_type used;
  bool is_whole;  // else the leftover of a writer
};

std::vector<CachedFile> files_in(const fs::path& folder) {
  std::vector<CachedFile> files;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    const bool is_whole = name.ends_with(".samples");
    if (!is_whole && !(name.ends_with(".tmp") && name.find(".samples.") != std::string::npos)) continue;
    std::error_code gone;  // another process may clean up as well
    const std::uint64_t bytes = it->file_size(gone);
    const fs::file_time_type used = it->last_write_time(gone);
    if (!gone) files.push_back({it->path(), bytes, used, is_whole});
  }
  return files;
}

}  // namespace

CacheFolder decoded_cache() {
  CacheFolder folder{.path = user_cache_directory(), .most_bytes = kDefaultBytes};
  if (!folder.path.empty()) folder.path /= "decoded";
  const char* size = std::getenv("SWEEP_CACHE_SIZE");
  if (size != nullptr && *size != '\0') folder.most_bytes = parse_size(size);
  return folder;
}

void mark_used(const fs::path& file) {
  std::error_code ignored;
  fs::last_write_time(file, fs::file_time_type::clock::now(), ignored);
}

void make_room(const CacheFolder& folder, std::uint64_t bytes) {
  std::vector<CachedFile> files = files_in(folder.path);
  std::ranges::sort(files, {}, &CachedFile::used);
  const auto day_ago = fs::file_time_type::clock::now() - std::chrono::hours(24);
  std::uint64_t total = bytes;
  for (const CachedFile& file : files) total += file.bytes;
  for (const CachedFile& file : files) {
    if (file.is_whole ? total <= folder.most_bytes : file.used > day_ago) continue;
    std::error_code ignored;
    if (fs::remove(file.path, ignored)) total -= file.bytes;
  }
}

CleanedCache clean_cache(const CacheFolder& folder) {
  CleanedCache cleaned;
  for (const CachedFile& file : files_in(folder.path)) {
    std::error_code error;
    if (fs::remove(file.path, error)) {
      ++cleaned.files;
      cleaned.bytes += file.bytes;
    }
    if (error) throw IoError(file.path.string() + ": cannot remove: " + error.message());
  }
  return cleaned;
}

}  // namespace sweep
