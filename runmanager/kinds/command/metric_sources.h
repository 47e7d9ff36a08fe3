// Where the metrics of a person's program come from: JSON lines in a file, lines of its output, and events
// that it writes for TensorBoard.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runmanager/config/run_config.h"
#include "runmanager/kinds/command/report_history.h"
#include "runmanager/sweepfile/metric_pattern.h"
#include "tbwriter/event_reader.h"

namespace sweep {

using UseReport = std::function<void(const MetricReport&)>;

/// The metric that a program means by one with the name of a parameter, as both have a column.
inline const Metric& metric_apart(const Metric& metric) {
  return metric_named("reported_" + std::string(metric.key));
}

/// Cuts text that comes in pieces into lines. Only the beginning of an overlong line counts.
class LineSplitter {
 public:
  using Use = std::function<void(std::string_view line, char end)>;
  /// `ends`: the characters that end a line. `limit`: the bytes of a line that count.
  LineSplitter(std::string_view ends, std::size_t limit) : ends_(ends), limit_(limit) {}
  void add(std::string_view text, const Use& use);
  /// The end of the text: its last line may have no line break.
  void finish(const Use& use);
  bool is_within_line() const { return !rest_.empty(); }

 private:
  void keep(std::string_view text);

  std::string_view ends_;
  std::size_t limit_;
  std::string rest_;
};

/// Finds values in a program's output by the regular expressions of "metrics". A value's step is that of the
/// expression, or counts how often the metric was found in this attempt: without steps of their own, it is
/// not known whether the values of an attempt go on or start over. If carriage returns overwrite a line, as
/// progress bars do, its last value counts.
class OutputMetrics {
 public:
  explicit OutputMetrics(const CommandSpec& spec);
  void begin_attempt();
  /// The next piece of the output.
  void add(std::string_view text);
  /// The end of the output: its last line may have no line break.
  void finish();
  /// What was found since the last call, as lines for a MetricFile.
  std::string take() { return std::exchange(found_, {}); }
  /// What is wrong with the first match since the last call that does not count; "" if all do.
  std::string take_problem() { return std::exchange(problem_, {}); }

 private:
  struct Entry {
    std::string name;  // in JSON
    MetricPattern pattern;
    std::int64_t count = 0;
    std::optional<MetricPattern::Match> match = {};  // in the line so far
  };
  void read(std::string_view line, char end);

  std::vector<Entry> entries_;
  LineSplitter splitter_{"\r\n", std::size_t{1} << 16};
  std::string found_, problem_;
};

/// Follows a file of JSON lines while it grows. Numbers of a line are values, "step", or "epoch", is their
/// step. NaN and Infinity are allowed as Python writes them. Other lines, and those that were cut, do not
/// count, see take_problem(). If the file is replaced, all of the new one is read.
class MetricFile {
 public:
  explicit MetricFile(std::filesystem::path path) : path_(std::move(path)) {}
  /// Reads what has been added. `attempt` is called with the number of each that begins.
  void poll(const UseReport& use, const std::function<void(int)>& attempt);
  /// When the file last changed, before the last poll(), in seconds since 1970.
  double modified() const { return modified_; }
  /// Appends lines; first ends a line that the program has left incomplete. Throws IoError.
  void append(std::string_view lines) const;
  /// Says that what follows is of this attempt. Throws IoError.
  void append_attempt(int attempt) const;
  /// Ends a line that the program has left incomplete, after which it counts. Throws IoError.
  void end_line() const;
  /// What is wrong with the first line since the last call that does not count; "" if all do.
  std::string take_problem() { return std::exchange(problem_, {}); }

 private:
  static constexpr std::size_t kLineLimit = std::size_t{1} << 24, kHead = 64;
  bool is_replaced(int file) const;
  void read_line(std::string_view line, const UseReport& use, const std::function<void(int)>& attempt);

  std::filesystem::path path_;
  std::uint64_t offset_ = 0;
  double modified_ = 0;
  std::string head_;  // of what was read
  LineSplitter lines_{"\n", kLineLimit};
  std::string problem_;
};

/// A report as a line of a MetricFile.
std::string report_line(std::int64_t step, const EpochRecord& values);

/// Follows the events files of other programs in a directory and below it. Leaves out what cannot be read.
class ProgramEvents {
 public:
  explicit ProgramEvents(std::filesystem::path directory) : directory_(std::move(directory)) {}
  /// Reads what has been added, of all files in the order of time.
  void poll(const UseReport& use);
  /// The files that exist now are those of earlier attempts.
  void begin_attempt();
  /// Renames the files of earlier attempts, so that TensorBoard shows no point of theirs.
  void set_aside_earlier();

 private:
  void read(const std::filesystem::path& file, tbwriter::EventReader& reader,
            std::vector<MetricReport>& reports);

  std::filesystem::path directory_;
  std::map<std::filesystem::path, std::unique_ptr<tbwriter::EventReader>> files_;
  std::set<std::filesystem::path> earlier_;
};

}  // namespace sweep
