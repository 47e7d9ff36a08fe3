// The output of a person's program, in the run's log.txt.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "core/base/file.h"

namespace sweep {

/// Appends to a file and keeps its beginning and its end: if it gets long, the middle is left out. Bytes that
/// cannot be written are lost without an error, as in LogFile. Not thread-safe.
class OutputLog {
 public:
  /// Opens the file, or makes it. `kept`: bytes of the beginning, and of the end. Throws IoError.
  explicit OutputLog(const std::filesystem::path& path, std::uint64_t kept = std::uint64_t{4} << 20);

  void write(std::string_view text);
  /// Ends the last line, if the program has not.
  void end_line();

 private:
  off_t end() const;
  void append(std::string_view text) const;
  void leave_out_middle(std::uint64_t size);

  const std::filesystem::path path_;
  FileDescriptor file_;
  const std::uint64_t kept_;
  std::uint64_t left_out_ = 0;
  char last_ = '\n';
};

}  // namespace sweep
