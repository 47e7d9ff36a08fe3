// What a person's program reports: JSON lines in a file, lines of its output, and events that it writes for
// TensorBoard, whose directories and tags have names of other programs.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runmanager/config/run_config.h"
#include "runmanager/kinds/command/report_history.h"
#include "runmanager/sweepfile/metric_pattern.h"
#include "tbwriter/event_reader.h"

namespace sweep {

/// The metric that a program means by one with the name of a parameter, as both have a column.
inline const Metric& metric_apart(const Metric& metric) {
  return metric_named("reported_" + std::string(metric.key));
}

/// Seconds of the system's clock.
inline double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// What the events of a directory are of: kSession is one of torch's add_hparams(), kSeries one of its
/// add_scalars().
enum class EventsPart { kRun, kTraining, kValidation, kTest, kSession, kSeries };

/// By the name of the directory: Keras writes to "train" and "validation". Never kSeries, which tags tell.
EventsPart part_of(const std::filesystem::path& directory);

/// A key of metrics() that a tag of other programs means: "Loss", "val_acc", "epoch_loss" of the validation.
/// Otherwise the tag, after "validation_" if it is of that part. "" for one of Keras whose steps are batches:
/// mostly they are epochs.
std::string metric_of(const std::string& tag, EventsPart part);

/// The same of a tag in the directory `subdirectory` of a run. add_scalars("loss", {"dev": …}) writes the tag
/// "loss" to "loss_dev", or to "loss/dev" if it is tensorboardX's: both become "loss_dev".
std::string metric_in(const std::filesystem::path& subdirectory, const std::string& tag);

/// The part of `directory` above the folders "/a/b" of the tag "a/b"; nothing if it does not end in these.
/// What tags may not have, such as blanks, is "_" in the tag only.
std::optional<std::string> above_tag(const std::string& directory, const std::string& tag);

/// Follows all that the program of a run reports, over all attempts:
///
/// - Its output, searched by the regular expressions of "metrics". A value's step is that of the expression,
///   or counts how often the metric was found in this attempt: without steps of their own, it is not known
///   whether the values of an attempt go on or start over. If carriage returns overwrite a line, as progress
///   bars do, its last value counts. What is found is appended to kMetricsFile: it is there when the run goes
///   on later.
/// - kMetricsFile, JSON lines. Numbers of a line are values, "step", or "epoch", is their step. NaN and
///   Infinity are allowed as Python writes them. If the file is replaced, all of the new one is read.
/// - The events files of other programs in the run's directory and below it. What cannot be read is left out.
///
/// Not thread-safe. Throws IoError if kMetricsFile cannot be written.
class MetricSources {
 public:
  using Use = std::function<void(MetricReport)>;

  MetricSources(std::filesystem::path run_directory, const CommandSpec& spec);

  /// Says that what follows is of this attempt. The events files that exist now are those of earlier ones.
  void begin_attempt(int attempt);
  /// The next piece of the output.
  void add_output(std::string_view text);
  /// The end of the attempt: its last line of output, and that of kMetricsFile, may have no line break.
  void end_attempt();

  /// Passes on what was added to kMetricsFile, also where attempts begin. Lines that were added since the
  /// last call share the time until the file changed.
  void poll_file(const Use& use);
  /// Passes on what was added to the events files, in the order of time.
  void poll_events(const Use& use);

  /// The attempt has started over: renames the events files of earlier ones, so that TensorBoard shows no
  /// point of theirs. If there are any, keeps the values of the steps that stay in kMetricsFile. May be
  /// called while reports are passed on.
  void start_over(const std::map<std::int64_t, EpochRecord>& kept);

  /// After the end of an attempt: if the program has replaced kMetricsFile, writes into it what was lost, so
  /// that the next start finds all that was reported, and the attempt's number.
  void restore(int attempt, const std::map<std::int64_t, EpochRecord>& reported);

  /// What does not count of kMetricsFile and of the output, and the first reason since the last call.
  std::map<std::string_view, std::string> take_problems() { return std::exchange(problems_, {}); }

 private:
  struct Expression {
    std::string name;  // of its metric, in JSON
    MetricPattern pattern;
    std::int64_t count = 0;                          // in this attempt
    std::optional<MetricPattern::Match> match = {};  // in the line so far
  };
  struct EventsFile {
    std::unique_ptr<tbwriter::EventReader> reader = {};  // while something of the file is not read
    std::uint64_t read = 0;                              // bytes of it
    bool is_earlier = false;                             // of an earlier attempt
    double latest = 0;                      // time; clocks may be set back, and steps of a file stay in order
    std::optional<MetricReport> next = {};  // that was read, but not passed on
  };

  std::string found_in(std::string_view output);
  void append(std::string_view lines) const;
  void find_events_files();
  void read_next(const std::filesystem::path& path, EventsFile& file) const;

  const std::filesystem::path directory_, path_;
  std::vector<Expression> expressions_;
  std::string output_line_, file_line_;  // as far as they have come
  std::uint64_t offset_ = 0;             // of what was read of kMetricsFile
  std::string head_;                     // its beginning
  bool is_replaced_ = false;             // since restore()
  double looked_ = 0;                    // when it was last read, in seconds since 1970
  std::string kept_;                     // lines that belong into it once it is read to its end
  std::map<std::filesystem::path, EventsFile> events_;
  double next_search_ = 0;  // for new ones
  std::map<std::string_view, std::string> problems_;
};

}  // namespace sweep
