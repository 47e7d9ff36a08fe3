#include "tbwriter/resume.h"

#include <algorithm>
#include <system_error>
#include <vector>

#include "core/base/error.h"
#include "tbwriter/directory_lock.h"
#include "tbwriter/event_file_name.h"
#include "tbwriter/event_reader.h"

namespace sweep::tbwriter {

void cut_back(const std::filesystem::path& log_dir, const FilePosition& position) {
  const Descriptor lock = lock_directory(log_dir);
  const std::vector<std::string> files = list_event_files(log_dir);
  const std::filesystem::path file = log_dir / position.file;
  if (std::ranges::find(files, position.file) == files.end()) {
    throw DataError(file.string() + ": the events file that the run was last saved with is missing");
  }
  EventReader reader(file);
  while (reader.position() < position.bytes && reader.next()) {
  }
  if (reader.position() != position.bytes) {
    throw DataError(file.string() + ": no record ends at byte " + std::to_string(position.bytes) +
                    ", where the run was last saved; the file " +
                    (reader.position() < position.bytes ? std::string(describe(reader.end())) + " at byte " +
                                                              std::to_string(reader.position())
                                                        : "has other records"));
  }
  std::error_code error;
  // The latest file is removed first. If this is interrupted, the remaining files still begin with all that
  // was saved, so it can be repeated.
  for (auto later = files.rbegin(); *later > position.file; ++later) {
    std::filesystem::remove(log_dir / *later, error);
    if (error) throw IoError((log_dir / *later).string() + ": cannot remove: " + error.message());
  }
  std::filesystem::resize_file(file, position.bytes, error);
  if (error) throw IoError(file.string() + ": cannot cut: " + error.message());
}

}  // namespace sweep::tbwriter
