#include "tbwriter/event_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <optional>
#include <system_error>

#include "core/base/file.h"
#include "tbwriter/event_reader.h"

namespace sweep::tbwriter {
namespace {

constexpr std::string_view kPrefix = "events.out.tfevents.";
constexpr std::size_t kSecondDigits = 10;
constexpr std::int64_t kLastSecond = 9'999'999'999;  // the year 2286

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "localhost";
  std::string host = name.data();
  for (char& c : host) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '.') c = '-';
  }
  return host;
}

// Clamped before the cast, which is undefined for NaN and for numbers that no integer holds.
std::int64_t whole_seconds(double now) {
  return static_cast<std::int64_t>(now > 0 ? std::min(now, static_cast<double>(kLastSecond)) : 0);
}

// Padded, so that names sort as text.
std::string name_at(std::int64_t seconds) {
  const std::string digits = std::to_string(seconds);
  return std::string(kPrefix) + std::string(kSecondDigits - digits.size(), '0') + digits + "." + host_name() +
         "." + std::to_string(::getpid()) + ".000000";
}

// Those in a name with as many digits as name_at() writes.
std::optional<std::int64_t> seconds_of(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  std::uint64_t seconds = 0;
  const char* const first = name.data() + kPrefix.size();
  const auto [last, failure] = std::from_chars(first, name.data() + name.size(), seconds);
  return failure == std::errc{} && last == first + kSecondDigits ? std::optional(seconds) : std::nullopt;
}

// Bytes of the whole records before the first damage, and not above `most`.
std::uint64_t whole_records(const std::filesystem::path& file, std::uint64_t most) {
  EventReader reader(file);
  std::uint64_t bytes = 0;
  while (bytes < most && reader.next() && reader.position() <= most) bytes = reader.position();
  return bytes;
}

}  // namespace

std::vector<std::string> list_event_files(const std::filesystem::path& directory) {
  std::vector<std::string> names;
  std::error_code error;
  if (!std::filesystem::exists(directory, error) && !error) return names;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    std::string name = entry->path().filename().string();
    if (name.find("tfevents") != std::string::npos) names.push_back(std::move(name));
  }
  if (error) throw IoError(directory.string() + ": cannot list: " + error.message());
  std::sort(names.begin(), names.end());
  return names;
}

bool is_event_file_name(std::string_view name) {
  if (!seconds_of(name)) return false;
  name.remove_prefix(kPrefix.size() + kSecondDigits);  // ".HOST.PROCESS.NUMBER" is left
  for (const std::size_t min_digits : {6, 1}) {
    const std::size_t dot = name.find_last_not_of("0123456789");
    if (dot == std::string_view::npos || name[dot] != '.' || name.size() - 1 - dot < min_digits) return false;
    name = name.substr(0, dot);
  }
  return name.size() > 1 && name.front() == '.';
}

std::string new_event_file_name(const std::vector<std::string>& existing, double now) {
  std::int64_t seconds = whole_seconds(now);
  for (const std::string& name : existing) {
    if (const auto other = seconds_of(name)) seconds = std::max(seconds, *other + 1);
    // Other programs may write numbers of other widths, which sort by their first digits, and other names.
    if (seconds > kLastSecond || name_at(seconds) <= name) {
      throw DirectoryError(name +
                           ": no event file can have a later name; move this one out of the run's directory");
    }
  }
  return name_at(seconds);
}

std::string first_event_file_name(const std::vector<std::string>& existing, double now) {
  std::int64_t seconds = whole_seconds(now);
  for (const std::string& name : existing)
    if (name_at(seconds) >= name) seconds = std::max<std::int64_t>(seconds_of(name).value_or(0) - 1, 0);
  return name_at(seconds);
}

// flock() rather than a lock file: the kernel releases it when the process dies, so no stale lock remains.
FileDescriptor lock_directory(const std::filesystem::path& directory) {
  FileDescriptor fd(
      retry_interrupted([&] { return ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
  if (fd.get() < 0) {
    throw IoError(directory.string() + ": cannot open the run's directory: " + std::strerror(errno));
  }
  if (retry_interrupted([&fd] { return ::flock(fd.get(), LOCK_EX | LOCK_NB); }) == 0) return fd;
  if (errno != EWOULDBLOCK) return fd;  // The file system does not support locks.
  const auto files = list_event_files(directory);
  throw IoError(directory.string() + ": another writer has this run's directory" +
                (files.empty() ? "" : "; its file, named by host and process, is " + files.back()));
}

FilePosition copy_prefix(const std::filesystem::path& log_dir, const FilePosition& position,
                         const std::filesystem::path& temporary) {
  const std::filesystem::path old = log_dir / position.file;
  std::error_code error;
  if (position.file.empty() || (!std::filesystem::exists(old, error) && !error)) return {};
  const std::string whole = read_file(old).substr(0, whole_records(old, position.bytes));
  if (whole.empty()) return {};
  write_file_atomically(temporary, whole);
  const double now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  FilePosition copy{new_event_file_name(list_event_files(log_dir), now), whole.size()};
  std::filesystem::rename(temporary, log_dir / copy.file, error);
  if (error) throw IoError((log_dir / copy.file).string() + ": cannot create: " + error.message());
  sync_directory(log_dir);
  return copy;
}

bool truncate_to(const std::filesystem::path& log_dir, const FilePosition& position) {
  const FileDescriptor lock = lock_directory(log_dir);
  const std::vector<std::string> files = list_event_files(log_dir);
  std::error_code error;
  bool complete = false;
  // The latest file is changed first. If this is interrupted, the remaining files still begin with all that
  // was saved, so it can be repeated.
  for (auto name = files.rbegin(); name != files.rend(); ++name) {
    if (!is_event_file_name(*name)) continue;  // of another program, and no part of this run
    const std::filesystem::path file = log_dir / *name;
    if (*name > position.file) {
      std::filesystem::remove(file, error);
      if (error) throw IoError(file.string() + ": cannot remove: " + error.message());
      continue;
    }
    if (std::filesystem::is_symlink(file, error))
      throw DataError(file.string() + ": is a symbolic link, and what it points to is not cut");
    const std::uint64_t size = std::filesystem::file_size(file, error);
    if (error) throw IoError(file.string() + ": cannot read its size: " + error.message());
    const bool is_last = *name == position.file;
    const std::uint64_t whole = whole_records(file, is_last ? position.bytes : size);
    complete = is_last ? whole == position.bytes : complete && whole == size;
    if (whole == size) continue;
    if (retry_interrupted([&] { return ::truncate(file.c_str(), static_cast<off_t>(whole)); }) != 0)
      throw IoError(file.string() + ": cannot cut: " + std::strerror(errno));
  }
  return complete;
}

}  // namespace sweep::tbwriter
