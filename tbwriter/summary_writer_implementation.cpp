#include "tbwriter/summary_writer_implementation.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <utility>

#include "tbwriter/proto_encoding.h"
#include "tbwriter/record.h"

namespace sweep::tbwriter {
namespace {

constexpr std::size_t kEventOverhead = 256;  // upper bound of the keys, lengths, time and step of an event

std::size_t field_size(std::size_t length) { return 1 + wire::varint_size(length) + length; }

void begin_event(std::string& out, double wall_time, std::int64_t step) {
  wire::real(out, field::kWallTime, wall_time);
  wire::integer(out, field::kStep, step);
}

// Appends a record whose event has one field with bytes.
void append_event(std::string& out, double wall_time, std::int64_t step, std::uint32_t field,
                  std::string_view content) {
  const std::size_t begin = begin_record(out);
  begin_event(out, wall_time, step);
  wire::always_bytes(out, field, content);
  end_record(out, begin);
}

// The version, and where this session begins: without that, TensorBoard's Python reader keeps what an older
// session wrote from that step on.
std::string first_records(double wall_time, std::int64_t purge_step) {
  constexpr std::int64_t kSessionStart = 1;
  std::string records, session;
  append_event(records, wall_time, 0, field::kFileVersion, "brain.Event:2");
  wire::integer(session, 1, kSessionStart);
  append_event(records, wall_time, purge_step, field::kSessionLog, session);
  return records;
}

void check_payload(std::size_t size, std::string_view tag) {
  if (size <= kMaxWrittenPayload) return;
  throw UsageError("\"" + std::string(tag) + "\": an event of " + std::to_string(size) +
                   " bytes was given, but a record must be smaller than 64 MiB");
}

// Appends an event with the values. `points` are known to be right.
void append_points(std::string& out, std::span<const Point> points, double wall_time, std::int64_t step) {
  std::size_t size = 0;
  for (const Point& point : points) size += field_size(point.size);
  const std::size_t begin = begin_record(out);
  begin_event(out, wall_time, step);
  wire::key(out, field::kSummary, wire::kBytes);
  wire::varint(out, size);
  for (const Point& point : points) {
    wire::key(out, field::kValue, wire::kBytes);
    wire::varint(out, point.size);
    wire::always_bytes(out, field::kTag, point.state->name);
    out += point.member.head;
    out += point.member.body;
    if (point.with_metadata) wire::always_bytes(out, field::kMetadata, point.state->metadata);
  }
  end_record(out, begin);
}

// TensorBoard's Rust reader abandons a file at any other time.
double checked_time(double wall_time) {
  if (!std::isfinite(wall_time)) throw UsageError("a wall time is not a finite number");
  return wall_time;
}

}  // namespace

SummaryWriter::Implementation::Implementation(const std::filesystem::path& directory,
                                              const WriterOptions& writer_options)
    : log_dir(directory),
      options(writer_options),
      tags_([this](const std::string& message) { warn(message); }),
      exceptions_(std::uncaught_exceptions()) {
  const double wall_time = now();
  log = EventLog::open(log_dir, options, wall_time, first_records(wall_time, options.purge_step));
}

SummaryWriter::Implementation::~Implementation() {
  try {
    if (log) log->close();
  } catch (const std::exception&) {
    // close() reports errors to those who call it.
  }
}

double SummaryWriter::Implementation::now() const {
  if (!options.clock)
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  return checked_time(options.clock());
}

double SummaryWriter::Implementation::time_of(const std::optional<double>& wall_time) const {
  return wall_time ? checked_time(*wall_time) : now();
}

void SummaryWriter::Implementation::warn(const std::string& message) const {
  if (options.warn) {
    options.warn(message);
  } else {
    std::fprintf(stderr, "tbwriter: %s\n", message.c_str());
  }
}

void SummaryWriter::Implementation::add(std::span<Point> points, std::int64_t step, const Details& details) {
  const double wall_time = time_of(details.wall_time);
  std::size_t bound = 0;
  for (const Point& point : points) {
    bound += point.member.body.size() + 3 * point.tag.size() + point.plugin_content.size() +
             details.description.size() + details.display_name.size() + kEventOverhead;
  }
  check_payload(bound, points.front().tag);
  log->append([&](std::string& buffer) {
    if (points.size() > 1) {  // one that is refused must not leave traces of those before it
      for (const Point& point : points) tags_.check(point.tag, point.kind, step);
    }
    for (std::size_t i = 0; i < points.size(); ++i) {
      Point& point = points[i];
      point.state = &tags_.state(point.tag, point.kind, step, details, point.plugin_content);
      const auto is_same = [&point](const Point& other) { return other.state == point.state; };
      point.with_metadata = !point.state->metadata.empty() && std::ranges::none_of(points.first(i), is_same);
      point.size = field_size(point.state->name.size()) + point.member.head.size() +
                   point.member.body.size() +
                   (point.with_metadata ? field_size(point.state->metadata.size()) : 0);
    }
    append_points(buffer, points, wall_time, step);
    // Only now: if memory has run out before, the next point of a tag still needs its metadata.
    for (const Point& point : points) tags_.record(*point.state, step);
  });
}

void SummaryWriter::Implementation::add_event(std::string_view name, double wall_time, std::int64_t step,
                                              std::uint32_t field, std::string_view content) {
  check_payload(content.size() + kEventOverhead, name);
  log->append([&](std::string& buffer) { append_event(buffer, wall_time, step, field, content); });
}

void SummaryWriter::Implementation::add_plugin_record(std::string_view tag, std::string_view plugin,
                                                      std::string_view content, std::string_view tensor) {
  // TensorBoard's Python loader fails for all runs if there is metadata without a value.
  constexpr std::int64_t kEmpty[] = {0};
  std::string value, summary;
  wire::always_bytes(value, field::kTag, tag);
  wire::always_bytes(value, field::kTensor,
                     tensor.empty() ? encode_float_tensor({}, kEmpty) : std::string(tensor));
  wire::always_bytes(value, field::kMetadata, encode_metadata(plugin, content, DataClass::kTensor, "", ""));
  wire::always_bytes(summary, field::kValue, value);
  add_event(tag, now(), 0, field::kSummary, summary);
}

void SummaryWriter::Implementation::start_session(const HParams& hparams, std::optional<double> start_time) {
  const std::string content = encode_session_start(hparams, time_of(start_time));
  log->locked([&] {
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

void SummaryWriter::Implementation::end_session(SessionStatus status, std::optional<double> end_time) {
  const std::string content = encode_session_end(status, time_of(end_time));
  log->locked([&] {
    if (session_ == Session::kEnded) throw UsageError("this run's hparams session has been ended before");
    session_ = Session::kEnded;
  });
  add_plugin_record("_hparams_/session_end_info", "hparams", content, "");
}

SummaryWriter& SummaryWriter::Implementation::line(const std::string& directory) {
  const std::lock_guard lock(mutex_);
  auto& writer = lines_[directory];
  if (!writer) writer = std::make_unique<SummaryWriter>(log_dir / directory, options);
  return *writer;
}

void SummaryWriter::Implementation::flush(bool sync) {
  log->flush(sync);
  const std::lock_guard lock(mutex_);
  for (auto& [directory, writer] : lines_) sync ? writer->sync() : writer->flush();
}

void SummaryWriter::Implementation::close(SessionStatus status) {
  std::exception_ptr failure;
  const auto keep_failure = [&failure](auto work) {
    try {
      work();
    } catch (const Error&) {
      if (!failure) failure = std::current_exception();
    }
  };
  bool first = false, ends_session = false;
  log->locked([&] {
    first = !std::exchange(closing_, true);
    ends_session = first && options.end_session_on_close && session_ == Session::kStarted;
  });
  if (ends_session) keep_failure([&] { end_session(status, {}); });
  if (first) keep_failure([&] { log->close(); });
  const std::lock_guard lock(mutex_);
  for (auto& line : lines_) keep_failure([&] { line.second->close(); });
  if (failure) std::rethrow_exception(failure);
}

void SummaryWriter::Implementation::check_nodes(std::span<const NodeProfile> nodes) {
  const std::lock_guard lock(mutex_);
  if (!graph_nodes_) {
    if (options.purge_step > 0) return;
    throw UsageError("a profile comes before the graph that it belongs to; call add_graph() first");
  }
  for (const NodeProfile& node : nodes) {
    if (!graph_nodes_->contains(node.node))
      throw UsageError("the profile has the node " + node.node + ", but the graph has none of that name");
  }
}

}  // namespace sweep::tbwriter
