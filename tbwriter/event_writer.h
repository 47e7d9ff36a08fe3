// Encodes values as events and appends them to the log. Not part of the installed interface.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tbwriter/event_log.h"
#include "tbwriter/hparams.h"
#include "tbwriter/tag_table.h"
#include "tbwriter/writer_options.h"

namespace sweep::tbwriter {

/// The member of Summary.Value's oneof that a message is, by its field number.
enum class ValueField : std::uint32_t { kImage = 4, kHistogram = 5, kAudio = 6, kTensor = 8 };

/// Writes the events of one run. Thread-safe. Errors are those of SummaryWriter.
class EventWriter {
 public:
  EventWriter(const std::filesystem::path& log_dir, const WriterOptions& options);
  ~EventWriter();  // ignores errors; close() reports them
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;

  void add_scalar(std::string_view tag, double value, std::int64_t step, const Details& details);
  void add_scalars(std::span<const ScalarPoint> points, std::int64_t step, const Details& details);

  /// Adds a value whose message is serialised already.
  void add_value(std::string_view tag, Kind kind, ValueField field, std::string_view message,
                 std::int64_t step, const Details& details, std::string_view plugin_content = {});

  /// Adds a value for a plugin that reserves a tag and reads its data from the
  /// metadata; `tensor` may be empty.
  void add_plugin_record(std::string_view tag, std::string_view plugin, std::string_view content,
                         std::string_view tensor);

  void add_graph(std::string_view graph_def, std::optional<double> wall_time);
  void add_run_metadata(std::string_view tag, std::string_view run_metadata, std::int64_t step);

  void start_session(const HParams& hparams, std::optional<double> start_time);
  void end_session(SessionStatus status, std::optional<double> end_time);

  /// Ends an open session with `status` if options().end_session_on_close, then closes the file.
  void close(SessionStatus status);

  double now() const;
  void warn(const std::string& message) const;
  const WriterOptions& options() const { return options_; }
  const std::filesystem::path& log_dir() const { return log_dir_; }
  EventLog& log() { return *log_; }

 private:
  enum class Session { kNone, kStarted, kEnded };

  double time_of(const std::optional<double>& wall_time) const;

  const WriterOptions options_;
  const std::filesystem::path log_dir_;

  // Guarded by the lock of the log's queue.
  TagTable tags_;
  Session session_ = Session::kNone;
  bool closing_ = false;

  const std::shared_ptr<EventLog> log_;  // its thread may outlive this object and uses nothing of it
};

}  // namespace sweep::tbwriter
