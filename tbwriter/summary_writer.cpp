#include "tbwriter/summary_writer.h"

#include <cmath>
#include <cstdio>
#include <exception>
#include <limits>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tbwriter/event_log.h"
#include "tbwriter/histogram.h"
#include "tbwriter/messages.h"
#include "tbwriter/pr_curve.h"
#include "tbwriter/record.h"
#include "tbwriter/utf8.h"
#include "tbwriter/wire.h"

namespace sweep::tbwriter {
namespace {

// Field numbers of Event, Summary and Summary.Value.
namespace field {
constexpr std::uint32_t kWallTime = 1, kStep = 2, kFileVersion = 3, kGraphDef = 4, kSummary = 5,
                        kSessionLog = 7;
constexpr std::uint32_t kValue = 1;
constexpr std::uint32_t kTag = 1, kSimpleValue = 2, kImage = 4, kHistogram = 5, kTensor = 8, kMetadata = 9;
}  // namespace field

constexpr std::int64_t kSessionStart = 1;
constexpr std::int64_t kLargestHParamsStep = std::numeric_limits<std::int32_t>::max();
constexpr unsigned kNoFile = std::numeric_limits<unsigned>::max();

enum class Kind { kScalar, kHistogram, kImage, kText, kPrCurve };

struct KindTraits {
  const char* name;    // in messages
  const char* plugin;  // in metadata
  DataClass data_class;
  bool needs_metadata;  // TensorBoard finds out the others by itself
};

constexpr KindTraits kKinds[] = {
    {"a scalar", "scalars", DataClass::kScalar, false},
    {"a histogram", "histograms", DataClass::kTensor, false},
    {"an image", "images", DataClass::kBlobs, false},
    {"text", "text", DataClass::kTensor, true},
    {"a PR curve", "pr_curves", DataClass::kTensor, true},
};

const KindTraits& traits(Kind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

// What the file has of a tag so far.
struct TagState {
  std::string name;  // as written: valid UTF-8
  Kind kind = Kind::kScalar;
  std::string metadata;              // empty: none needed
  unsigned metadata_file = kNoFile;  // the file that has it
  std::int64_t last_step = 0;
  bool has_step = false, warned = false;
};

struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};

void begin_event(std::string& out, double wall_time, std::int64_t step) {
  wire::real(out, field::kWallTime, wall_time);
  wire::integer(out, field::kStep, step);
}

std::size_t field_size(std::size_t length) { return 1 + wire::varint_size(length) + length; }

std::string version_record(double wall_time) {
  std::string event, record;
  begin_event(event, wall_time, 0);
  wire::bytes(event, field::kFileVersion, "brain.Event:2");
  append_record(record, event);
  return record;
}

// TensorBoard's slower reader keeps what an older session wrote unless each session says where it begins.
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

double system_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

void check_payload(std::size_t size, std::string_view tag) {
  if (size <= kLongestPayload) return;
  throw UsageError("\"" + std::string(tag) + "\": an event of " + std::to_string(size) +
                   " bytes was given, but a record must be smaller than 64 MiB");
}

}  // namespace

class SummaryWriter::Implementation {
 public:
  Implementation(const std::filesystem::path& log_dir, WriterOptions options)
      : options_(std::move(options)),
        log_dir_(log_dir),
        exceptions_(std::uncaught_exceptions()),
        log_(log_dir, log_options(options_), now(), first_records(now(), options_.first_step),
             [this] { return version_record(now()); }) {}

  double now() const { return options_.clock ? options_.clock() : system_seconds(); }

  double time_of(const std::optional<double>& wall_time) const {
    if (!wall_time) return now();
    // TensorBoard's faster reader gives a whole file up at such a time.
    if (!std::isfinite(*wall_time)) throw UsageError("a wall time is not a finite number");
    return *wall_time;
  }

  void add_scalar(std::string_view tag, double value, std::int64_t step, const Details& details) {
    const double wall_time = time_of(details.wall_time);
    log_.append([&](std::string& buffer, unsigned file) {
      TagState& state = use_tag(tag, Kind::kScalar, step, details);
      const bool with_metadata = needs_metadata(state, file);
      const std::size_t value_size = scalar_size(state, with_metadata);
      const std::size_t begin = begin_record(buffer);
      begin_event(buffer, wall_time, step);
      wire::key(buffer, field::kSummary, wire::kBytes);
      wire::varint(buffer, field_size(value_size));
      append_scalar(buffer, state, value, value_size, with_metadata, file);
      end_record(buffer, begin);
    });
  }

  void add_scalars(std::span<const ScalarPoint> points, std::int64_t step, const Details& details) {
    if (points.empty()) return;
    const double wall_time = time_of(details.wall_time);
    log_.append([&](std::string& buffer, unsigned file) {
      for (const ScalarPoint& point : points) check_tag(point.tag, Kind::kScalar, step);
      std::string summary;
      for (const ScalarPoint& point : points) {
        TagState& state = use_tag(point.tag, Kind::kScalar, step, details);
        const bool with_metadata = needs_metadata(state, file);
        append_scalar(summary, state, point.value, scalar_size(state, with_metadata), with_metadata, file);
      }
      check_payload(summary.size() + 64, points.front().tag);
      const std::size_t begin = begin_record(buffer);
      begin_event(buffer, wall_time, step);
      wire::always_bytes(buffer, field::kSummary, summary);
      end_record(buffer, begin);
    });
  }

  // Adds one value whose message is already encoded; `field` is its number in Summary.Value.
  void add_value(std::string_view tag, Kind kind, std::uint32_t field, std::string_view message,
                 std::int64_t step, const Details& details, std::string_view plugin_content = {}) {
    const double wall_time = time_of(details.wall_time);
    check_payload(
        message.size() + tag.size() + details.description.size() + details.display_name.size() + 256, tag);
    log_.append([&](std::string& buffer, unsigned file) {
      TagState& state = use_tag(tag, kind, step, details, plugin_content);
      const bool with_metadata = needs_metadata(state, file);
      const std::size_t value_size = field_size(state.name.size()) + field_size(message.size()) +
                                     (with_metadata ? field_size(state.metadata.size()) : 0);
      const std::size_t begin = begin_record(buffer);
      begin_event(buffer, wall_time, step);
      wire::key(buffer, field::kSummary, wire::kBytes);
      wire::varint(buffer, field_size(value_size));
      wire::key(buffer, field::kValue, wire::kBytes);
      wire::varint(buffer, value_size);
      wire::always_bytes(buffer, field::kTag, state.name);
      wire::always_bytes(buffer, field, message);
      if (with_metadata) append_metadata(buffer, state, file);
      end_record(buffer, begin);
    });
  }

  // Adds a value that consists of metadata only, of a plugin that uses a tag of its own.
  void add_plugin_record(std::string_view tag, std::string_view plugin, std::string_view content,
                         std::string_view tensor, double wall_time) {
    std::string value, summary, event;
    wire::always_bytes(value, field::kTag, tag);
    if (!tensor.empty()) wire::always_bytes(value, field::kTensor, tensor);
    wire::always_bytes(value, field::kMetadata, encode_metadata(plugin, content, DataClass::kTensor, "", ""));
    wire::always_bytes(summary, field::kValue, value);
    begin_event(event, wall_time, 0);
    wire::always_bytes(event, field::kSummary, summary);
    check_payload(event.size(), tag);
    log_.append([&](std::string& buffer, unsigned) { append_record(buffer, event); });
  }

  void add_graph(const Graph& graph, std::optional<double> wall_time) {
    const std::string message = encode_graph(graph);
    std::string event;
    begin_event(event, time_of(wall_time), 0);
    wire::always_bytes(event, field::kGraphDef, message);
    check_payload(event.size(), "graph");
    log_.append([&](std::string& buffer, unsigned) { append_record(buffer, event); });
  }

  void start_session(const HParams& hparams, std::optional<double> start_time) {
    const double time = time_of(start_time);
    const std::string content = encode_session_start(hparams, time);
    log_.append([&](std::string&, unsigned) {
      if (session_ != Session::kNone) throw UsageError("this run's hparams session has been started before");
      if (largest_scalar_step_ > kLargestHParamsStep) refuse_step(largest_scalar_step_);
      session_ = Session::kStarted;
    });
    add_plugin_record("_hparams_/session_start_info", "hparams", content, "", now());
  }

  void end_session(SessionStatus status, std::optional<double> end_time) {
    const std::string content = encode_session_end(status, time_of(end_time));
    log_.append([&](std::string&, unsigned) {
      if (session_ == Session::kEnded) throw UsageError("this run's hparams session has been ended before");
      session_ = Session::kEnded;
    });
    add_plugin_record("_hparams_/session_end_info", "hparams", content, "", now());
  }

  void close(SessionStatus status) {
    if (std::exchange(closing_, true)) return;
    if (options_.end_session_on_close && session_ == Session::kStarted) end_session(status, {});
    log_.close();
  }

  void warn(const std::string& message) const {
    if (options_.warn) {
      options_.warn(message);
    } else {
      std::fprintf(stderr, "tbwriter: %s\n", message.c_str());
    }
  }

  bool destroyed_by_exception() const { return std::uncaught_exceptions() > exceptions_; }
  const std::filesystem::path& log_dir() const { return log_dir_; }
  EventLog& log() { return log_; }

 private:
  enum class Session { kNone, kStarted, kEnded };

  static EventLogOptions log_options(const WriterOptions& options) {
    return {options.flush_interval, options.flush_bytes, options.queue_bytes, options.longest_wait,
            options.max_file_bytes};
  }

  [[noreturn]] static void refuse_step(std::int64_t step) {
    throw UsageError("step " + std::to_string(step) + " of a run with hparams is above " +
                     std::to_string(kLargestHParamsStep) +
                     "; TensorBoard would show no run's hparams at all");
  }

  // Everything that can be wrong with a point, before anything is written. Called with the queue locked, as
  // below.
  TagState* check_tag(std::string_view tag, Kind kind, std::int64_t step) {
    if (tag.empty()) throw UsageError("a tag is empty; TensorBoard could not show it");
    const auto found = tags_.find(tag);
    if (found != tags_.end() && found->second.kind != kind) {
      throw UsageError("\"" + std::string(tag) + "\" is " + traits(found->second.kind).name +
                       " and cannot become " + traits(kind).name +
                       ": TensorBoard would show only the first; use another tag");
    }
    if (kind == Kind::kScalar && step > kLargestHParamsStep && session_ != Session::kNone) refuse_step(step);
    return found == tags_.end() ? nullptr : &found->second;
  }

  TagState& use_tag(std::string_view tag, Kind kind, std::int64_t step, const Details& details,
                    std::string_view plugin_content = {}) {
    TagState* known = check_tag(tag, kind, step);
    TagState& state = known != nullptr ? *known : new_tag(tag, kind, details, plugin_content);
    if (state.has_step && step <= state.last_step && !state.warned) {
      state.warned = true;
      warn("\"" + state.name + "\": step " + std::to_string(step) + " comes after step " +
           std::to_string(state.last_step) + "; TensorBoard may hide points unless steps grow");
    }
    state.has_step = true;
    state.last_step = step;
    if (kind == Kind::kScalar) largest_scalar_step_ = std::max(largest_scalar_step_, step);
    return state;
  }

  TagState& new_tag(std::string_view tag, Kind kind, const Details& details,
                    std::string_view plugin_content) {
    TagState state;
    state.name = valid_utf8(tag);
    state.kind = kind;
    const KindTraits& kind_traits = traits(kind);
    if (kind_traits.needs_metadata || !details.description.empty() || !details.display_name.empty()) {
      state.metadata = encode_metadata(kind_traits.plugin, plugin_content, kind_traits.data_class,
                                       details.display_name, details.description);
    }
    return tags_.emplace(std::string(tag), std::move(state)).first->second;
  }

  static bool needs_metadata(const TagState& state, unsigned file) {
    return !state.metadata.empty() && state.metadata_file != file;
  }

  static void append_metadata(std::string& out, TagState& state, unsigned file) {
    wire::always_bytes(out, field::kMetadata, state.metadata);
    state.metadata_file = file;
  }

  static std::size_t scalar_size(const TagState& state, bool with_metadata) {
    return field_size(state.name.size()) + 1 + sizeof(float) +
           (with_metadata ? field_size(state.metadata.size()) : 0);
  }

  // Appends a Summary's value.
  static void append_scalar(std::string& out, TagState& state, double value, std::size_t value_size,
                            bool with_metadata, unsigned file) {
    wire::key(out, field::kValue, wire::kBytes);
    wire::varint(out, value_size);
    wire::always_bytes(out, field::kTag, state.name);
    wire::always_float(out, field::kSimpleValue, static_cast<float>(value));
    if (with_metadata) append_metadata(out, state, file);
  }

  const WriterOptions options_;
  const std::filesystem::path log_dir_;
  const int exceptions_;
  bool closing_ = false;

  // Used with the queue locked.
  std::unordered_map<std::string, TagState, TextHash, std::equal_to<>> tags_;
  std::int64_t largest_scalar_step_ = 0;
  Session session_ = Session::kNone;

  EventLog log_;  // Last, so that its thread ends before what it uses.
};

SummaryWriter::SummaryWriter(const std::filesystem::path& log_dir, WriterOptions options)
    : implementation_(std::make_unique<Implementation>(log_dir, std::move(options))) {}

SummaryWriter::~SummaryWriter() {
  try {
    const bool failed = implementation_->destroyed_by_exception();
    implementation_->close(failed ? SessionStatus::kFailure : SessionStatus::kSuccess);
  } catch (const std::exception& error) {
    implementation_->warn(error.what());
  }
}

void SummaryWriter::add_scalar(std::string_view tag, double value, std::int64_t step,
                               const Details& details) {
  implementation_->add_scalar(tag, value, step, details);
}

void SummaryWriter::add_scalars(std::span<const ScalarPoint> points, std::int64_t step,
                                const Details& details) {
  implementation_->add_scalars(points, step, details);
}

void SummaryWriter::add_histogram(std::string_view tag, std::span<const float> values, std::int64_t step,
                                  const Details& details) {
  implementation_->add_value(tag, Kind::kHistogram, field::kHistogram,
                             encode_histogram(make_histogram(values)), step, details);
}

void SummaryWriter::add_histogram(std::string_view tag, std::span<const double> values, std::int64_t step,
                                  const Details& details) {
  implementation_->add_value(tag, Kind::kHistogram, field::kHistogram,
                             encode_histogram(make_histogram(values)), step, details);
}

void SummaryWriter::add_image(std::string_view tag, std::span<const std::uint8_t> pixels, ImageSize size,
                              std::int64_t step, const Details& details) {
  add_image(tag, encode_image(pixels, size), step, details);
}

void SummaryWriter::add_image(std::string_view tag, const EncodedImage& image, std::int64_t step,
                              const Details& details) {
  implementation_->add_value(tag, Kind::kImage, field::kImage, encode_image_message(image), step, details);
}

void SummaryWriter::add_image_grid(std::string_view tag, std::span<const std::uint8_t> pixels, BatchSize size,
                                   std::int64_t step, const GridOptions& grid, const Details& details) {
  add_image(tag, encode_image_grid(pixels, size, grid), step, details);
}

void SummaryWriter::add_image_grid(std::string_view tag, std::span<const float> pixels, BatchSize size,
                                   std::int64_t step, const GridOptions& grid, const Details& details) {
  add_image(tag, encode_image_grid(pixels, size, grid), step, details);
}

void SummaryWriter::add_text(std::string_view tag, std::string_view markdown, std::int64_t step,
                             const Details& details) {
  implementation_->add_value(tag, Kind::kText, field::kTensor, encode_text_tensor(valid_utf8(markdown)), step,
                             details);
}

void SummaryWriter::add_graph(const Graph& graph, std::optional<double> wall_time) {
  implementation_->add_graph(graph, wall_time);
}

void SummaryWriter::add_hparams_start(const HParams& hparams, std::optional<double> start_time) {
  implementation_->start_session(hparams, start_time);
}

void SummaryWriter::add_hparams_end(SessionStatus status, std::optional<double> end_time) {
  implementation_->end_session(status, end_time);
}

void SummaryWriter::add_pr_curve(std::string_view tag, std::span<const std::uint8_t> labels,
                                 std::span<const float> scores, std::int64_t step, int thresholds,
                                 const Details& details) {
  const std::vector<float> curve = make_pr_curve(labels, scores, {}, thresholds);
  const std::int64_t shape[] = {6, thresholds};
  std::string content;
  wire::integer(content, 2, thresholds);
  implementation_->add_value(tag, Kind::kPrCurve, field::kTensor, encode_float_tensor(curve, shape), step,
                             details, content);
}

void SummaryWriter::add_custom_scalars_layout(const CustomScalarsLayout& layout) {
  implementation_->add_plugin_record("custom_scalars__config__", "custom_scalars", "",
                                     encode_text_tensor(encode_layout(layout)), implementation_->now());
}

void SummaryWriter::flush() { implementation_->log().flush(false); }

void SummaryWriter::sync() { implementation_->log().flush(true); }

FilePosition SummaryWriter::position() {
  flush();
  return {path().filename().string(), implementation_->log().written_bytes()};
}

void SummaryWriter::close() { implementation_->close(SessionStatus::kSuccess); }

const std::filesystem::path& SummaryWriter::log_dir() const { return implementation_->log_dir(); }

std::filesystem::path SummaryWriter::path() const { return implementation_->log().path(); }

}  // namespace sweep::tbwriter
