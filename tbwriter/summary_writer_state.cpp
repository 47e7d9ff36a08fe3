#include "tbwriter/summary_writer_state.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>

#include "tbwriter/message.h"
#include "tbwriter/record.h"

namespace sweep::tbwriter {
namespace {

constexpr std::size_t kEventOverhead = 256;  // upper bound of the keys, lengths, time and step of an event
constexpr std::uint32_t kValue = 1;          // in Summary

std::size_t bytes_size(std::size_t length) { return 1 + wire::varint_size(length) + length; }

// Appends a record whose event has one field with bytes.
void append_event(std::string& out, double wall_time, std::int64_t step, std::uint32_t field,
                  std::string_view content) {
  const std::size_t begin = begin_record(out);
  Message(out).real(kWallTime, wall_time).integer(kStep, step).message(field, content);
  end_record(out, begin);
}

// The version, and where this session begins: without that, TensorBoard's Python reader keeps what an older
// session wrote from that step on.
std::string first_records(double wall_time, std::int64_t purge_step) {
  constexpr std::int64_t kSessionStart = 1;
  std::string records;
  append_event(records, wall_time, 0, kFileVersion, "brain.Event:2");
  append_event(records, wall_time, purge_step, kSessionLog, Message().integer(1, kSessionStart).take());
  return records;
}

void check_tag(std::string_view tag) {
  if (tag.empty()) throw UsageError("a tag is empty; TensorBoard could not show it");
}

void check_payload(std::size_t size, std::string_view tag) {
  if (size <= kMaxWrittenPayload) return;
  throw UsageError("\"" + std::string(tag) + "\": an event of " + std::to_string(size) +
                   " bytes was given, but a record must be smaller than 64 MiB");
}

// Appends an event with the values. `points` are known to be right.
void append_points(std::string& out, std::span<const Point> points, double wall_time, std::int64_t step) {
  std::size_t size = 0;
  for (const Point& point : points) size += bytes_size(point.size);
  const std::size_t begin = begin_record(out);
  Message event(out);
  event.real(kWallTime, wall_time).integer(kStep, step).head(kSummary, size);
  for (const Point& point : points) {
    event.head(kValue, point.size).message(kTag, point.state->name);
    if (point.kind == &kScalar) {
      event.always(kSimpleValue, point.number);
    } else {
      event.message(point.kind->field, point.message);
    }
    if (point.with_metadata) event.message(kMetadata, point.state->metadata);
  }
  end_record(out, begin);
}

// TensorBoard's Rust reader abandons a file at any other time.
double checked_time(double wall_time) {
  if (!std::isfinite(wall_time)) throw UsageError("a wall time is not a finite number");
  return wall_time;
}

bool is_scalar(const Kind& kind) { return &kind == &kScalar || &kind == &kScalarTensor; }

}  // namespace

SummaryWriter::State::State(const std::filesystem::path& directory, const WriterOptions& writer_options)
    : log_dir(directory), options(writer_options) {
  const double wall_time = now();
  log = EventLog::open(log_dir, options, wall_time, first_records(wall_time, options.purge_step));
}

SummaryWriter::State::~State() {
  try {
    if (log) log->close();
  } catch (const std::exception&) {
    // close() reports errors to those who call it.
  }
}

double SummaryWriter::State::now() const {
  if (!options.clock)
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  return checked_time(options.clock());
}

double SummaryWriter::State::time_of(const std::optional<double>& wall_time) const {
  return wall_time ? checked_time(*wall_time) : now();
}

void SummaryWriter::State::warn(const std::string& message) const noexcept {
  try {
    if (options.warn) return options.warn(message);
  } catch (...) {
    // A warning loses no data, and the destructor cannot pass an exception on.
  }
  std::fprintf(stderr, "tbwriter: %s\n", message.c_str());
}

void SummaryWriter::State::check_metric_step(std::int64_t step) {
  // TensorBoard stores the step of a metric in 32 bits; its HParams tab fails for all runs if one does not
  // fit.
  constexpr std::int64_t kLargest = std::numeric_limits<std::int32_t>::max();
  if (step <= kLargest) return;
  throw UsageError("step " + std::to_string(step) + " of a run with hparams is above " +
                   std::to_string(kLargest) + "; TensorBoard would show no run's hparams at all");
}

void SummaryWriter::State::check_open(std::string_view tag) {
  check_tag(tag);
  log->locked([this] {
    if (closing) throw UsageError(log_dir.string() + ": the writer is closed; nothing can be added any more");
  });
}

TagState* SummaryWriter::State::find(std::string_view tag, const Kind& kind, std::int64_t step) {
  check_tag(tag);
  if (limits_steps && is_scalar(kind)) check_metric_step(step);
  const auto found = tags.find(tag);
  if (found == tags.end()) return nullptr;
  if (found->second.kind != &kind) {
    throw UsageError("\"" + std::string(tag) + "\" is " + found->second.kind->name + " and cannot become " +
                     kind.name + ": TensorBoard would show only the first; use another tag");
  }
  return &found->second;
}

TagState& SummaryWriter::State::state_of(const Point& point, std::int64_t step, const Details& details) {
  const Kind& kind = *point.kind;
  if (TagState* known = find(point.tag, kind, step)) return *known;
  TagState tag{.name = valid_utf8(point.tag), .kind = &kind};
  if (kind.needs_metadata || !details.description.empty() || !details.display_name.empty()) {
    tag.metadata = encode_metadata(kind.plugin, point.plugin_content, kind.data_class, details.display_name,
                                   details.description);
  }
  return tags.emplace(std::string(point.tag), std::move(tag)).first->second;
}

void SummaryWriter::State::record(TagState& tag, std::int64_t step) {
  if (tag.last_step && step <= *tag.last_step && !tag.warned) {
    tag.warned = true;
    warn("\"" + tag.name + "\": step " + std::to_string(step) + " comes after step " +
         std::to_string(*tag.last_step) + "; TensorBoard may hide points unless steps grow");
  }
  tag.metadata.clear();
  tag.last_step = step;
  if (is_scalar(*tag.kind)) largest_step = std::max(largest_step, step);
}

void SummaryWriter::State::add(std::span<Point> points, std::int64_t step, const Details& details) {
  const double wall_time = time_of(details.wall_time);
  std::size_t bound = 0;
  for (const Point& point : points) {
    bound += point.message.size() + 3 * point.tag.size() + point.plugin_content.size() +
             details.description.size() + details.display_name.size() + kEventOverhead;
  }
  check_payload(bound, points.front().tag);
  log->append([&](std::string& buffer) {
    if (points.size() > 1) {  // one that is refused must not leave traces of those before it
      for (const Point& point : points) find(point.tag, *point.kind, step);
    }
    for (std::size_t i = 0; i < points.size(); ++i) {
      Point& point = points[i];
      point.state = &state_of(point, step, details);
      const auto is_same = [&point](const Point& other) { return other.state == point.state; };
      point.with_metadata = !point.state->metadata.empty() && std::ranges::none_of(points.first(i), is_same);
      point.size = bytes_size(point.state->name.size()) +
                   (point.kind == &kScalar ? 1 + sizeof point.number : bytes_size(point.message.size())) +
                   (point.with_metadata ? bytes_size(point.state->metadata.size()) : 0);
    }
    append_points(buffer, points, wall_time, step);
    // Only now: if memory has run out before, the next point of a tag still needs its metadata.
    for (const Point& point : points) record(*point.state, step);
  });
}

void SummaryWriter::State::add(std::string_view tag, const Kind& kind, std::string_view message,
                               std::int64_t step, const Details& details, std::string_view plugin_content) {
  Point point{.tag = tag, .kind = &kind, .message = message, .plugin_content = plugin_content};
  add({&point, 1}, step, details);
}

void SummaryWriter::State::add_event(std::string_view name, double wall_time, std::int64_t step,
                                     std::uint32_t field, std::string_view content,
                                     const std::function<void()>& accept) {
  check_payload(content.size() + kEventOverhead, name);
  log->append([&](std::string& buffer) {
    append_event(buffer, wall_time, step, field, content);
    if (accept) accept();
  });
}

void SummaryWriter::State::add_plugin_record(std::string_view tag, std::string_view plugin,
                                             std::string_view content, std::string_view tensor,
                                             const std::function<void()>& accept) {
  // TensorBoard's Python loader fails for all runs if there is metadata without a value.
  constexpr std::int64_t kEmpty[] = {0};
  Message value;
  value.message(kTag, tag)
      .message(kTensorValue,
               tensor.empty() ? encode_tensor(std::span<const float>(), kEmpty) : std::string(tensor))
      .message(kMetadata, encode_metadata(plugin, content, DataClass::kTensor, "", ""));
  add_event(tag, now(), 0, kSummary, Message().message(kValue, value.take()).take(), accept);
}

void SummaryWriter::State::end_session(SessionStatus status, const std::optional<double>& end_time) {
  const std::string content = encode_session_end(status, time_of(end_time));
  add_plugin_record("_hparams_/session_end_info", "hparams", content, "", [this] {
    if (session == Session::kEnded) throw UsageError("this run's hparams session has been ended before");
    session = Session::kEnded;
  });
}

void SummaryWriter::State::flush(bool sync) {
  log->flush(sync);
  const std::lock_guard lock(mutex);
  for (auto& [directory, writer] : lines) sync ? writer->sync() : writer->flush();
}

void SummaryWriter::State::close(SessionStatus status) {
  std::exception_ptr failure;
  const auto keep_failure = [&failure](auto work) {
    try {
      work();
    } catch (...) {  // also of the caller's clock
      if (!failure) failure = std::current_exception();
    }
  };
  bool first = false, ends_session = false;
  log->locked([&] {
    first = !std::exchange(closing, true);
    ends_session = first && options.end_session_on_close && session == Session::kStarted;
  });
  if (ends_session) keep_failure([&] { end_session(status, {}); });
  if (first) keep_failure([&] { log->close(); });
  const std::lock_guard lock(mutex);
  for (auto& line : lines) keep_failure([&] { line.second->close(); });
  if (failure) std::rethrow_exception(failure);
}

}  // namespace sweep::tbwriter
