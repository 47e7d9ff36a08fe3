#include "tbwriter/event_writer.h"

#include <cmath>
#include <cstdio>
#include <utility>

#include "tbwriter/proto_encoding.h"
#include "tbwriter/record.h"
#include "tbwriter/wire.h"

namespace sweep::tbwriter {
namespace {

// Field numbers of Event, Summary and Summary.Value.
namespace field {
constexpr std::uint32_t kWallTime = 1, kStep = 2, kFileVersion = 3, kGraphDef = 4, kSummary = 5,
                        kSessionLog = 7, kTaggedRunMetadata = 8;
constexpr std::uint32_t kValue = 1;
constexpr std::uint32_t kTag = 1, kSimpleValue = 2, kTensor = 8, kMetadata = 9;
}  // namespace field

constexpr std::int64_t kSessionStart = 1;
constexpr std::size_t kEventOverhead = 256;  // upper bound of the keys, lengths, time and step of an event

void begin_event(std::string& out, double wall_time, std::int64_t step) {
  wire::real(out, field::kWallTime, wall_time);
  wire::integer(out, field::kStep, step);
}

std::size_t field_size(std::size_t length) { return 1 + wire::varint_size(length) + length; }

std::size_t scalar_size(const TagState& state, bool with_metadata) {
  return field_size(state.name.size()) + 1 + sizeof(float) +
         (with_metadata ? field_size(state.metadata.size()) : 0);
}

void append_metadata(std::string& out, TagState& state, unsigned file) {
  wire::always_bytes(out, field::kMetadata, state.metadata);
  state.metadata_file = file;
}

// Appends a Summary.Value with a scalar.
void append_scalar(std::string& out, TagState& state, double value, unsigned file) {
  const bool with_metadata = state.needs_metadata(file);
  wire::key(out, field::kValue, wire::kBytes);
  wire::varint(out, scalar_size(state, with_metadata));
  wire::always_bytes(out, field::kTag, state.name);
  wire::always_float(out, field::kSimpleValue, static_cast<float>(value));
  if (with_metadata) append_metadata(out, state, file);
}

std::string version_record(double wall_time) {
  std::string event, record;
  begin_event(event, wall_time, 0);
  wire::bytes(event, field::kFileVersion, "brain.Event:2");
  append_record(record, event);
  return record;
}

// TensorBoard's Python reader discards what an older session wrote from a step on only if the new session
// says where it begins.
std::string session_start_record(double wall_time, std::int64_t first_step) {
  std::string event, session, record;
  begin_event(event, wall_time, first_step);
  wire::integer(session, 1, kSessionStart);
  wire::always_bytes(event, field::kSessionLog, session);
  append_record(record, event);
  return record;
}

std::string first_records(double wall_time, std::int64_t first_step) {
  return version_record(wall_time) + session_start_record(wall_time, first_step);
}

void check_payload(std::size_t size, std::string_view tag) {
  if (size <= kLongestPayload) return;
  throw UsageError("\"" + std::string(tag) + "\": an event of " + std::to_string(size) +
                   " bytes was given, but a record must be smaller than 64 MiB");
}

EventLogOptions log_options(const WriterOptions& options) {
  return {options.flush_interval,
          options.flush_bytes,
          options.queue_bytes,
          options.longest_wait,
          options.max_file_bytes,
          options.locks_directory,
          {}};
}

}  // namespace

EventWriter::EventWriter(const std::filesystem::path& log_dir, const WriterOptions& options)
    : options_(options),
      log_dir_(log_dir),
      tags_([this](const std::string& message) { warn(message); }),
      log_(EventLog::open(log_dir, log_options(options_), now(), first_records(now(), options_.first_step),
                          [this] { return version_record(now()); })) {}

EventWriter::~EventWriter() {
  try {
    log_->close();
  } catch (const std::exception&) {
    // Callers that want to know call close().
  }
}

double EventWriter::now() const {
  if (options_.clock) return options_.clock();
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

double EventWriter::time_of(const std::optional<double>& wall_time) const {
  if (!wall_time) return now();
  // TensorBoard's Rust reader abandons a file at such a time.
  if (!std::isfinite(*wall_time)) throw UsageError("a wall time is not a finite number");
  return *wall_time;
}

void EventWriter::add_scalar(std::string_view tag, double value, std::int64_t step, const Details& details) {
  const double wall_time = time_of(details.wall_time);
  check_payload(3 * tag.size() + details.description.size() + details.display_name.size() + kEventOverhead,
                tag);
  log_->append([&](std::string& buffer, unsigned file) {
    TagState& state = tags_.use(tag, Kind::kScalar, step, details);
    const std::size_t begin = begin_record(buffer);
    begin_event(buffer, wall_time, step);
    wire::key(buffer, field::kSummary, wire::kBytes);
    wire::varint(buffer, field_size(scalar_size(state, state.needs_metadata(file))));
    append_scalar(buffer, state, value, file);
    end_record(buffer, begin);
  });
}

void EventWriter::add_scalars(std::span<const ScalarPoint> points, std::int64_t step,
                              const Details& details) {
  if (points.empty()) return;
  const double wall_time = time_of(details.wall_time);
  std::size_t size = kEventOverhead;
  for (const ScalarPoint& point : points) {
    size += 3 * point.tag.size() + details.description.size() + details.display_name.size() + kEventOverhead;
  }
  check_payload(size, points.front().tag);
  log_->append([&](std::string& buffer, unsigned file) {
    for (const ScalarPoint& point : points) tags_.check(point.tag, Kind::kScalar, step);
    std::string summary;
    for (const ScalarPoint& point : points) {
      append_scalar(summary, tags_.use(point.tag, Kind::kScalar, step, details), point.value, file);
    }
    const std::size_t begin = begin_record(buffer);
    begin_event(buffer, wall_time, step);
    wire::always_bytes(buffer, field::kSummary, summary);
    end_record(buffer, begin);
  });
}

void EventWriter::add_value(std::string_view tag, Kind kind, ValueField value_field, std::string_view message,
                            std::int64_t step, const Details& details, std::string_view plugin_content) {
  const double wall_time = time_of(details.wall_time);
  check_payload(message.size() + 3 * tag.size() + plugin_content.size() + details.description.size() +
                    details.display_name.size() + kEventOverhead,
                tag);
  log_->append([&](std::string& buffer, unsigned file) {
    TagState& state = tags_.use(tag, kind, step, details, plugin_content);
    const bool with_metadata = state.needs_metadata(file);
    const std::size_t value_size = field_size(state.name.size()) + field_size(message.size()) +
                                   (with_metadata ? field_size(state.metadata.size()) : 0);
    const std::size_t begin = begin_record(buffer);
    begin_event(buffer, wall_time, step);
    wire::key(buffer, field::kSummary, wire::kBytes);
    wire::varint(buffer, field_size(value_size));
    wire::key(buffer, field::kValue, wire::kBytes);
    wire::varint(buffer, value_size);
    wire::always_bytes(buffer, field::kTag, state.name);
    wire::always_bytes(buffer, static_cast<std::uint32_t>(value_field), message);
    if (with_metadata) append_metadata(buffer, state, file);
    end_record(buffer, begin);
  });
}

void EventWriter::add_plugin_record(std::string_view tag, std::string_view plugin, std::string_view content,
                                    std::string_view tensor) {
  // TensorBoard's Python loader fails for all runs if there is metadata without a value.
  constexpr std::int64_t kEmpty[] = {0};
  std::string value, summary, event;
  wire::always_bytes(value, field::kTag, tag);
  wire::always_bytes(value, field::kTensor,
                     tensor.empty() ? encode_float_tensor({}, kEmpty) : std::string(tensor));
  wire::always_bytes(value, field::kMetadata, encode_metadata(plugin, content, DataClass::kTensor, "", ""));
  wire::always_bytes(summary, field::kValue, value);
  begin_event(event, now(), 0);
  wire::always_bytes(event, field::kSummary, summary);
  check_payload(event.size(), tag);
  log_->append([&](std::string& buffer, unsigned) { append_record(buffer, event); });
}

void EventWriter::add_graph(std::string_view graph_def, std::optional<double> wall_time) {
  std::string event;
  begin_event(event, time_of(wall_time), 0);
  wire::always_bytes(event, field::kGraphDef, graph_def);
  check_payload(event.size(), "graph");
  log_->append([&](std::string& buffer, unsigned) { append_record(buffer, event); });
}

void EventWriter::add_run_metadata(std::string_view tag, std::string_view run_metadata, std::int64_t step) {
  std::string event, tagged;
  wire::bytes(tagged, 1, tag);
  wire::bytes(tagged, 2, run_metadata);
  begin_event(event, now(), step);
  wire::always_bytes(event, field::kTaggedRunMetadata, tagged);
  check_payload(event.size(), tag);
  log_->append([&](std::string& buffer, unsigned) { append_record(buffer, event); });
}

void EventWriter::start_session(const HParams& hparams, std::optional<double> start_time) {
  const std::string content = encode_session_start(hparams, time_of(start_time));
  log_->locked([&] {
    if (session_ != Session::kNone) throw UsageError("this run's hparams session has been started before");
    tags_.limit_steps();
    session_ = Session::kStarted;
  });
  for (const auto& [name, value] : hparams) {
    if (const auto* number = std::get_if<double>(&value); number != nullptr && !std::isfinite(*number)) {
      warn("the hyperparameter " + name + " is " + std::to_string(*number) +
           ", which TensorBoard's table cannot show; it is left out");
    }
  }
  add_plugin_record("_hparams_/session_start_info", "hparams", content, "");
}

void EventWriter::end_session(SessionStatus status, std::optional<double> end_time) {
  const std::string content = encode_session_end(status, time_of(end_time));
  log_->locked([&] {
    if (session_ == Session::kEnded) throw UsageError("this run's hparams session has been ended before");
    session_ = Session::kEnded;
  });
  add_plugin_record("_hparams_/session_end_info", "hparams", content, "");
}

void EventWriter::close(SessionStatus status) {
  bool first = false, end = false;
  log_->locked([&] {
    first = !std::exchange(closing_, true);
    end = first && options_.end_session_on_close && session_ == Session::kStarted;
  });
  if (!first) return;
  if (end) end_session(status, {});
  log_->close();
}

void EventWriter::warn(const std::string& message) const {
  if (options_.warn) {
    options_.warn(message);
  } else {
    std::fprintf(stderr, "tbwriter: %s\n", message.c_str());
  }
}

}  // namespace sweep::tbwriter
