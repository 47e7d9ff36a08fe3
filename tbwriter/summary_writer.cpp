#include "tbwriter/summary_writer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <limits>
#include <utility>

#include "core/base/utf8.h"
#include "tbwriter/record.h"
#include "tbwriter/summary_writer_state.h"

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
  require(!tag.empty(), "a tag is empty; TensorBoard could not show it");
}

void check_payload(std::size_t size, std::string_view tag) {
  require(size <= kMaxWrittenPayload, "\"", tag, "\": an event of ", size,
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
  require(std::isfinite(wall_time), "a wall time is not a finite number");
  return wall_time;
}

std::string encode_metadata(const Kind& kind, std::string_view content, const Details& details) {
  return Message()
      .message(1, Message().bytes(1, kind.plugin).bytes(2, content).take())
      .text(2, details.display_name)
      .text(3, details.description)
      .integer(4, static_cast<int>(kind.data_class))
      .take();
}

// Tag "a/b" and line "c" give the directory "a_b_c", without separators and leading dots, so that it stays
// inside the run's.
std::string line_directory(std::string_view tag, std::string_view line) {
  std::string name = valid_utf8(tag) + "_" + valid_utf8(line);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '/' || c == '\0'; }, '_');
  return name.starts_with('.') ? "_" + name : name;
}

bool is_scalar(const Kind& kind) { return &kind == &kScalar || &kind == &kScalarTensor; }

}  // namespace

SummaryWriter::State::State(const std::filesystem::path& directory, const WriterOptions& writer_options)
    : log_dir(directory), options(writer_options) {
  const double wall_time = now();
  log = EventLog::open(log_dir, options, wall_time, first_records(wall_time, options.purge_step));
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
  require(step <= kLargest, "step ", step, " of a run with hparams is above ", kLargest,
          "; TensorBoard would show no run's hparams at all");
}

void SummaryWriter::State::check_open(std::string_view tag) {
  check_tag(tag);
  log->locked([this] {
    require(!closing, log_dir.native(), ": the writer is closed; nothing can be added any more");
  });
}

TagState* SummaryWriter::State::find(std::string_view tag, const Kind& kind, std::int64_t step) {
  check_tag(tag);
  if (limits_steps && is_scalar(kind)) check_metric_step(step);
  const auto found = tags.find(tag);
  if (found == tags.end()) return nullptr;
  require(found->second.kind == &kind, "\"", tag, "\" is ", found->second.kind->name, " and cannot become ",
          kind.name, ": TensorBoard would show only the first; use another tag");
  return &found->second;
}

TagState& SummaryWriter::State::state_of(const Point& point, std::int64_t step, const Details& details) {
  const Kind& kind = *point.kind;
  if (TagState* known = find(point.tag, kind, step)) return *known;
  TagState tag{.name = valid_utf8(point.tag), .kind = &kind};
  if (kind.needs_metadata || !details.description.empty() || !details.display_name.empty()) {
    tag.metadata = encode_metadata(kind, point.plugin_content, details);
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

void SummaryWriter::State::add_plugin_record(std::string_view tag, const char* plugin,
                                             std::string_view content, std::string_view tensor,
                                             const std::function<void()>& accept) {
  // TensorBoard's Python loader fails for all runs if there is metadata without a value.
  constexpr std::int64_t kEmpty[] = {0};
  Message value;
  value.message(kTag, tag)
      .message(kTensorValue,
               tensor.empty() ? encode_tensor(std::span<const float>(), kEmpty) : std::string(tensor))
      .message(kMetadata, encode_metadata({.plugin = plugin}, content, {}));
  add_event(tag, now(), 0, kSummary, Message().message(kValue, value.take()).take(), accept);
}

SummaryWriter::SummaryWriter(const std::filesystem::path& log_dir, WriterOptions options)
    : state_(std::make_unique<State>(log_dir, options)) {}

SummaryWriter::~SummaryWriter() {
  try {
    const bool failed = std::uncaught_exceptions() > state_->exceptions;
    close(failed ? SessionStatus::kFailure : SessionStatus::kSuccess);
  } catch (const std::exception& error) {
    state_->warn(error.what());
  }
}

void SummaryWriter::add_scalar(std::string_view tag, double value, std::int64_t step,
                               const Details& details) {
  Point point{.tag = tag, .kind = &kScalar, .number = static_cast<float>(value)};
  state_->add({&point, 1}, step, details);
}

void SummaryWriter::add_scalar_tensor(std::string_view tag, double value, std::int64_t step,
                                      const Details& details) {
  const float number[] = {static_cast<float>(value)};
  state_->add(tag, kScalarTensor, encode_tensor(number, {}), step, details);
}

void SummaryWriter::add_scalar_batch(std::span<const ScalarPoint> points, std::int64_t step,
                                     const Details& details) {
  if (points.empty()) return;
  std::vector<Point> all;
  all.reserve(points.size());
  for (const ScalarPoint& point : points)
    all.push_back({.tag = point.tag, .kind = &kScalar, .number = static_cast<float>(point.value)});
  state_->add(all, step, details);
}

void SummaryWriter::add_scalars(std::string_view tag, std::span<const ScalarPoint> points, std::int64_t step,
                                const Details& details) {
  const auto line = [&](const std::string& directory) -> SummaryWriter& {
    const std::lock_guard lock(state_->mutex);
    state_->check_open(tag);
    const auto known = state_->lines.find(directory);
    if (known != state_->lines.end()) return *known->second;
    auto writer = std::make_unique<SummaryWriter>(log_dir() / directory, state_->options);
    return *state_->lines.emplace(directory, std::move(writer)).first->second;
  };
  for (const ScalarPoint& point : points)
    line(line_directory(tag, point.tag)).add_scalar(tag, point.value, step, details);
}

void SummaryWriter::State::flush(bool sync) {
  log->flush(sync);
  const std::lock_guard lock(mutex);
  for (auto& [directory, writer] : lines) sync ? writer->sync() : writer->flush();
}

void SummaryWriter::flush() { state_->flush(false); }

void SummaryWriter::sync() { state_->flush(true); }

FilePosition SummaryWriter::position() const { return state_->log->end(); }

void SummaryWriter::close() { close(SessionStatus::kSuccess); }

void SummaryWriter::close(SessionStatus status) {
  if (state_->log->is_forked()) return;  // It lacks the threads that may hold locks.
  std::exception_ptr failure;
  const auto keep_failure = [&failure](auto work) {
    try {
      work();
    } catch (...) {  // also of the caller's clock
      if (!failure) failure = std::current_exception();
    }
  };
  bool first = false, ends_session = false;
  state_->log->locked([&] {
    first = !std::exchange(state_->closing, true);
    ends_session =
        first && state_->options.end_session_on_close && state_->session == State::Session::kStarted;
  });
  if (ends_session) keep_failure([&] { add_hparams_end(status); });
  if (first) keep_failure([&] { state_->log->close(); });
  const std::lock_guard lock(state_->mutex);
  for (auto& line : state_->lines) keep_failure([&] { line.second->close(); });
  if (failure) std::rethrow_exception(failure);
}

const std::filesystem::path& SummaryWriter::log_dir() const { return state_->log_dir; }

const std::filesystem::path& SummaryWriter::path() const { return state_->log->path(); }

}  // namespace sweep::tbwriter
