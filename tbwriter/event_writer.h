// Puts values together to events and hands them to the queue. Not part of the installed interface.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tbwriter/event_log.h"
#include "tbwriter/summary_writer.h"
#include "tbwriter/tag_table.h"

namespace sweep::tbwriter {

/// Which member of Summary.Value's oneof a message is; the numbers are those of the fields.
enum class ValueField : std::uint32_t { kImage = 4, kHistogram = 5, kAudio = 6, kTensor = 8 };

/// One run's events. Thread-safe.
class EventWriter {
 public:
  EventWriter(const std::filesystem::path& log_dir, const WriterOptions& options);
  ~EventWriter();  // errors are for close()
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;

  void add_scalar(std::string_view tag, double value, std::int64_t step, const Details& details);
  void add_scalars(std::span<const ScalarPoint> points, std::int64_t step, const Details& details);

  /// Adds one value whose message is encoded already.
  void add_value(std::string_view tag, Kind kind, ValueField field, std::string_view message,
                 std::int64_t step, const Details& details, std::string_view plugin_content = {});

  /// Adds a value of a plugin that has a tag of its own and keeps its data in the metadata; `tensor` may be
  /// empty.
  void add_plugin_record(std::string_view tag, std::string_view plugin, std::string_view content,
                         std::string_view tensor);

  void add_graph(std::string_view graph_def, std::optional<double> wall_time);
  void add_run_metadata(std::string_view tag, std::string_view run_metadata, std::int64_t step);

  void start_session(const HParams& hparams, std::optional<double> start_time);
  void end_session(SessionStatus status, std::optional<double> end_time);

  /// Ends an open session, if that is wanted, and closes the file.
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

  // Used with the queue locked.
  TagTable tags_;
  Session session_ = Session::kNone;
  bool closing_ = false;

  const std::shared_ptr<EventLog> log_;  // its thread uses nothing of this object
};

}  // namespace sweep::tbwriter
