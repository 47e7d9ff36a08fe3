// Where the metrics of a person's program come from: JSON lines in a file, lines of its output, and events
// that it writes for TensorBoard.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runmanager/config/command_spec.h"
#include "runmanager/kinds/command/report_history.h"
#include "runmanager/sweepfile/command_reader.h"
#include "tbwriter/event_reader.h"

namespace sweep {

using UseReport = std::function<void(const MetricReport&)>;

/// The report of a JSON line: its numbers, and "step", or "epoch", for the step. NaN and Infinity are allowed
/// as Python writes them. Nothing if it is none, as a line that was cut.
std::optional<MetricReport> parse_metric_line(std::string_view line);
/// The line that parse_metric_line() reads.
std::string metric_line(const MetricReport& report);

/// Cuts text into lines, which may come in pieces. Of a line that is too long, the beginning counts.
class LineSplitter {
 public:
  void add(std::string_view text, const std::function<void(std::string_view line)>& use);
  /// The end of the text, which may be a line, too.
  void finish(const std::function<void(std::string_view line)>& use);

 private:
  std::string rest_;
};

/// Finds values in lines by the regular expressions of "metrics". A value's step is that of the expression,
/// or counts how often the metric was found.
class LineMetrics {
 public:
  explicit LineMetrics(const CommandSpec& spec);
  void begin_attempt();
  void read(std::string_view line, const UseReport& use);

 private:
  struct Entry {
    std::string name;
    MetricPattern pattern;
    std::int64_t count = 0;
  };
  std::vector<Entry> entries_;
};

/// Follows a file of JSON lines while it grows.
class MetricFile {
 public:
  explicit MetricFile(std::filesystem::path path) : path_(std::move(path)) {}
  /// Reads what has been added. `attempt` is called where a new one begins. Throws IoError.
  void poll(const UseReport& use, const std::function<void()>& attempt);
  /// Appends lines, of which the last one has no newline. Throws IoError.
  void append(std::string_view lines);
  /// Says that what follows is of this attempt. Throws IoError.
  void append_attempt(int attempt);

 private:
  std::filesystem::path path_;
  std::uint64_t offset_ = 0;
  LineSplitter lines_;
};

/// Follows the events files of other programs in a directory and below it. What cannot be read is left out.
class ProgramEvents {
 public:
  explicit ProgramEvents(std::filesystem::path directory) : directory_(std::move(directory)) {}
  void poll(const UseReport& use);
  /// Files that are there now are those of earlier attempts.
  void begin_attempt();
  /// Renames the files of earlier attempts, so that TensorBoard shows no point of theirs.
  void set_aside_earlier();

 private:
  void read(const std::filesystem::path& file, tbwriter::EventReader& reader, const UseReport& use);

  std::filesystem::path directory_;
  std::map<std::filesystem::path, std::unique_ptr<tbwriter::EventReader>> files_;
  std::set<std::filesystem::path> earlier_;
};

}  // namespace sweep
