#include "tbwriter/resume.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <vector>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/retry.h"
#include "tbwriter/directory_lock.h"
#include "tbwriter/event_file_name.h"
#include "tbwriter/event_reader.h"

namespace sweep::tbwriter {
namespace {

// Bytes of the whole records before the first damage, and not above `most`.
std::uint64_t whole_records(const std::filesystem::path& file, std::uint64_t most) {
  EventReader reader(file);
  std::uint64_t bytes = 0;
  while (bytes < most && reader.next() && reader.position() <= most) bytes = reader.position();
  return bytes;
}

std::string read_prefix(const std::filesystem::path& file, std::uint64_t bytes) {
  const FileDescriptor in = open_regular_file(file);
  std::string prefix(bytes, '\0');
  std::size_t size = 0;
  while (size < prefix.size()) {
    const ssize_t got =
        retry_interrupted([&] { return ::read(in.get(), prefix.data() + size, prefix.size() - size); });
    if (got <= 0)
      throw DataError(file.string() + ": cannot read: " + (got < 0 ? std::strerror(errno) : "cut"));
    size += static_cast<std::size_t>(got);
  }
  return prefix;
}

}  // namespace

FilePosition copy_prefix(const std::filesystem::path& log_dir, const FilePosition& position,
                         const std::filesystem::path& temporary) {
  const std::filesystem::path old = log_dir / position.file;
  std::error_code error;
  if (position.file.empty() || !std::filesystem::exists(old, error)) return {};
  const std::uint64_t whole = whole_records(old, position.bytes);
  if (whole == 0) return {};
  write_file_atomically(temporary, read_prefix(old, whole));
  const double now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  const FilePosition copy{event_file_name(next_session(list_event_files(log_dir), now), 0), whole};
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
    if (std::filesystem::is_symlink(file))
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
