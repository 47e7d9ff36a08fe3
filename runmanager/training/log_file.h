// The log.txt of a run. Not part of the installed interface.
#pragma once

#include <fmt/format.h>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/file.h"
#include "runmanager/records/results.h"

namespace sweep {

/// Appends lines such as "2026-01-31T12:00:00.123 info completed", and the output of a program as it is, each
/// at once. If output makes the file long, its middle is left out. What cannot be written is lost without an
/// error: a full disk is reported by the files that matter. Not thread-safe.
class LogFile {
 public:
  /// Opens `path`; `is_new`: nothing may be there yet. `kept`: bytes of the beginning, and of the end. Throws
  /// IoError if the file cannot be opened, or is a symbolic link or anything else than a regular file.
  LogFile(const std::filesystem::path& path, bool is_new, std::uint64_t kept = std::uint64_t{4} << 20);

  /// Format text and arguments as fmt::format() does.
  template <typename... Args>
  void info(fmt::format_string<Args...> text, Args&&... args) {
    write("info", fmt::format(text, std::forward<Args>(args)...));
  }
  template <typename... Args>
  void warn(fmt::format_string<Args...> text, Args&&... args) {
    write("warning", fmt::format(text, std::forward<Args>(args)...));
  }
  template <typename... Args>
  void error(fmt::format_string<Args...> text, Args&&... args) {
    write("error", fmt::format(text, std::forward<Args>(args)...));
  }
  void write_output(std::string_view text);
  /// Ends the last line of the output, if the program has not.
  void end_line();

 private:
  void write(std::string_view level, std::string_view text);
  void append(std::string_view text);
  std::string tail(std::size_t count) const;
  void leave_out_middle(std::uint64_t size);

  const std::filesystem::path path_;
  FileDescriptor file_;
  const std::uint64_t kept_;
  std::uint64_t left_out_ = 0;
  char last_ = '\n';
};

/// The last lines of the log.txt in a run's directory, for an error that tells what the run did before it:
/// "\nlog.txt ends with:\n…"; "" if there is none.
std::string end_of_log(const std::filesystem::path& run_directory);

/// "epoch 2: loss 0.5, accuracy 0.85, validation loss 0.6, accuracy 0.8, 1.2 s, 50k images/s".
std::string epoch_text(const EpochRecord& epoch);

/// What the metrics of a run say of its test set, "test: loss 0.5, accuracy 0.85", and how it has ended.
void log_end(LogFile& log, const std::map<std::string, double>& metrics, RunStatus status,
             const std::string& reason);

}  // namespace sweep
