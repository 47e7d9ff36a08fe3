#include "tbwriter/summary_writer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <exception>
#include <map>
#include <mutex>
#include <unordered_set>
#include <utility>

#include "tbwriter/audio.h"
#include "tbwriter/event_log.h"
#include "tbwriter/histogram.h"
#include "tbwriter/pr_curve.h"
#include "tbwriter/proto_encoding.h"
#include "tbwriter/record.h"
#include "tbwriter/tag_table.h"
#include "tbwriter/utf8.h"
#include "tbwriter/wire.h"

namespace sweep::tbwriter {
namespace {

// Field numbers of Event, Summary and Summary.Value.
namespace field {
constexpr std::uint32_t kWallTime = 1, kStep = 2, kFileVersion = 3, kGraphDef = 4, kSummary = 5,
                        kSessionLog = 7, kTaggedRunMetadata = 8;
constexpr std::uint32_t kValue = 1;
constexpr std::uint32_t kTag = 1, kSimpleValue = 2, kImage = 4, kHistogram = 5, kAudio = 6, kTensor = 8,
                        kMetadata = 9;
}  // namespace field

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

// The member of Summary.Value's oneof: its key and number, or its key and length, then the message.
struct Member {
  explicit Member(float scalar) { wire::always_float(head, field::kSimpleValue, scalar); }
  Member(std::uint32_t field, std::string_view message) : body(message) {
    wire::key(head, field, wire::kBytes);
    wire::varint(head, message.size());
  }
  std::string head;
  std::string_view body;
};

// A value to be added, and how it is encoded.
struct Point {
  std::string_view tag;
  Kind kind;
  Member member;
  std::string_view plugin_content = {};
  TagState* state = nullptr;
  bool with_metadata = false;
  std::size_t size = 0;  // of the Summary.Value
};

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

std::string pr_curve_content(std::size_t thresholds) {
  std::string content;
  wire::integer(content, 2, static_cast<std::int64_t>(thresholds));
  return content;
}

// Tag "a/b" and line "c" give the directory "a_b_c", without separators and leading dots, so that it stays
// inside the run's.
std::string line_directory(std::string_view tag, std::string_view line) {
  std::string name = valid_utf8(tag) + "_" + valid_utf8(line);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '/' || c == '\0'; }, '_');
  return name.starts_with('.') ? "_" + name : name;
}

// Whether all extents are >= 0 and their product is `count`. Divides, because the product may overflow.
bool fits(std::span<const std::int64_t> shape, std::size_t count) {
  if (std::ranges::any_of(shape, [](std::int64_t extent) { return extent < 0; })) return false;
  if (std::ranges::find(shape, 0) != shape.end()) return count == 0;
  std::uint64_t elements = 1;
  for (const std::int64_t extent : shape) {
    if (static_cast<std::uint64_t>(extent) > count / elements) return false;
    elements *= static_cast<std::uint64_t>(extent);
  }
  return elements == count;
}

}  // namespace

class SummaryWriter::Implementation {
 public:
  Implementation(const std::filesystem::path& directory, const WriterOptions& writer_options)
      : log_dir(directory),
        options(writer_options),
        tags_([this](const std::string& message) { warn(message); }),
        exceptions_(std::uncaught_exceptions()) {
    const double wall_time = now();
    log = EventLog::open(log_dir, options, wall_time, first_records(wall_time, options.purge_step));
  }

  ~Implementation() {
    try {
      if (log) log->close();
    } catch (const std::exception&) {
      // close() reports errors to those who call it.
    }
  }

  double now() const {
    if (!options.clock)
      return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
    return checked_time(options.clock());
  }

  double time_of(const std::optional<double>& wall_time) const {
    return wall_time ? checked_time(*wall_time) : now();
  }

  void warn(const std::string& message) const {
    if (options.warn) {
      options.warn(message);
    } else {
      std::fprintf(stderr, "tbwriter: %s\n", message.c_str());
    }
  }

  /// Adds one event with all points, or nothing.
  void add(std::span<Point> points, std::int64_t step, const Details& details) {
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
        point.with_metadata =
            !point.state->metadata.empty() && std::ranges::none_of(points.first(i), is_same);
        point.size = field_size(point.state->name.size()) + point.member.head.size() +
                     point.member.body.size() +
                     (point.with_metadata ? field_size(point.state->metadata.size()) : 0);
      }
      append_points(buffer, points, wall_time, step);
      // Only now: if memory has run out before, the next point of a tag still needs its metadata.
      for (const Point& point : points) tags_.record(*point.state, step);
    });
  }

  /// Adds an event with one value, whose message is of `field`.
  void add(std::string_view tag, Kind kind, std::uint32_t field, std::string_view message, std::int64_t step,
           const Details& details, std::string_view plugin_content = {}) {
    Point point{tag, kind, Member(field, message), plugin_content};
    add({&point, 1}, step, details);
  }

  /// Adds an event that is no summary; `name` stands for it in messages.
  void add_event(std::string_view name, double wall_time, std::int64_t step, std::uint32_t field,
                 std::string_view content) {
    check_payload(content.size() + kEventOverhead, name);
    log->append([&](std::string& buffer) { append_event(buffer, wall_time, step, field, content); });
  }

  /// Adds a value for a plugin that reserves a tag and reads its data from the metadata; `tensor` may be
  /// empty.
  void add_plugin_record(std::string_view tag, std::string_view plugin, std::string_view content,
                         std::string_view tensor) {
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

  void start_session(const HParams& hparams, std::optional<double> start_time) {
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

  void end_session(SessionStatus status, std::optional<double> end_time) {
    const std::string content = encode_session_end(status, time_of(end_time));
    log->locked([&] {
      if (session_ == Session::kEnded) throw UsageError("this run's hparams session has been ended before");
      session_ = Session::kEnded;
    });
    add_plugin_record("_hparams_/session_end_info", "hparams", content, "");
  }

  /// The writer of a line of add_scalars(), which is a run in a subdirectory.
  SummaryWriter& line(const std::string& directory) {
    const std::lock_guard lock(mutex_);
    auto& writer = lines_[directory];
    if (!writer) writer = std::make_unique<SummaryWriter>(log_dir / directory, options);
    return *writer;
  }

  void flush(bool sync) {
    log->flush(sync);
    const std::lock_guard lock(mutex_);
    for (auto& [directory, writer] : lines_) sync ? writer->sync() : writer->flush();
  }

  /// Closes all lines before it reports the first failure.
  void close(SessionStatus status) {
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
    for (auto& [directory, writer] : lines_) keep_failure([&] { writer->close(); });
    if (failure) std::rethrow_exception(failure);
  }

  /// Calls add(), and from then on knows the names of the graph's nodes. Throws UsageError if it does
  /// already.
  template <class Add>
  void set_graph(std::unordered_set<std::string> nodes, Add add) {
    const std::lock_guard lock(mutex_);
    if (graph_nodes_) throw UsageError("this run has a graph already; TensorBoard shows one per run");
    add();
    graph_nodes_ = std::move(nodes);
  }

  void check_nodes(std::span<const NodeProfile> nodes) {
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

  bool destroyed_by_exception() const { return std::uncaught_exceptions() > exceptions_; }

  const std::filesystem::path log_dir;
  const WriterOptions options;
  std::shared_ptr<EventLog> log;  // its thread may outlive this object and uses nothing of it

 private:
  enum class Session { kNone, kStarted, kEnded };

  // TensorBoard's Rust reader abandons a file at any other time.
  static double checked_time(double wall_time) {
    if (!std::isfinite(wall_time)) throw UsageError("a wall time is not a finite number");
    return wall_time;
  }

  // Guarded by the lock of the log's queue.
  TagTable tags_;
  Session session_ = Session::kNone;
  bool closing_ = false;

  const int exceptions_;
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<SummaryWriter>> lines_;
  std::optional<std::unordered_set<std::string>> graph_nodes_;  // once there is a graph
};

SummaryWriter::SummaryWriter(const std::filesystem::path& log_dir, WriterOptions options)
    : implementation_(std::make_unique<Implementation>(log_dir, options)) {}

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
  Point point{tag, Kind::kScalar, Member(static_cast<float>(value))};
  implementation_->add({&point, 1}, step, details);
}

void SummaryWriter::add_scalar_tensor(std::string_view tag, double value, std::int64_t step,
                                      const Details& details) {
  const float number[] = {static_cast<float>(value)};
  implementation_->add(tag, Kind::kScalarTensor, field::kTensor, encode_float_tensor(number, {}), step,
                       details);
}

void SummaryWriter::add_scalar_batch(std::span<const ScalarPoint> points, std::int64_t step,
                                     const Details& details) {
  if (points.empty()) return;
  std::vector<Point> all;
  all.reserve(points.size());
  for (const ScalarPoint& point : points)
    all.push_back({point.tag, Kind::kScalar, Member(static_cast<float>(point.value))});
  implementation_->add(all, step, details);
}

void SummaryWriter::add_scalars(std::string_view tag, std::span<const ScalarPoint> points, std::int64_t step,
                                const Details& details) {
  for (const ScalarPoint& point : points) {
    implementation_->line(line_directory(tag, point.tag)).add_scalar(tag, point.value, step, details);
  }
}

void SummaryWriter::add_histogram(std::string_view tag, Values values, std::int64_t step,
                                  const Details& details) {
  implementation_->add(tag, Kind::kHistogram, field::kHistogram, encode_histogram(make_histogram(values)),
                       step, details);
}

void SummaryWriter::add_histogram(std::string_view tag, Values values, HistogramBins bins, std::int64_t step,
                                  const Details& details) {
  implementation_->add(tag, Kind::kHistogram, field::kHistogram,
                       encode_histogram(make_histogram(values, bins)), step, details);
}

void SummaryWriter::add_histogram_counts(std::string_view tag, const HistogramCounts& histogram,
                                         std::int64_t step, const Details& details) {
  implementation_->add(tag, Kind::kHistogram, field::kHistogram,
                       encode_histogram(checked_histogram(histogram)), step, details);
}

void SummaryWriter::add_image(std::string_view tag, const EncodedImage& image, std::int64_t step,
                              const Details& details) {
  implementation_->add(tag, Kind::kImage, field::kImage, encode_image_message(image), step, details);
}

void SummaryWriter::add_images(std::string_view tag, std::span<const EncodedImage> images, std::int64_t step,
                               const Details& details) {
  if (images.empty()) throw UsageError("\"" + std::string(tag) + "\": no images were given");
  std::vector<std::string> strings{std::to_string(images[0].width), std::to_string(images[0].height)};
  for (const EncodedImage& image : images) {
    if (image.width != images[0].width || image.height != images[0].height) {
      throw UsageError("\"" + std::string(tag) + "\": images of one tag and step must have the same size");
    }
    strings.push_back(image.bytes);
  }
  implementation_->add(tag, Kind::kImages, field::kTensor, encode_strings_tensor(strings), step, details);
}

void SummaryWriter::add_image(std::string_view tag, const Pixels& pixels, ImageSize size, std::int64_t step,
                              const Details& details) {
  add_image(tag, encode_image(pixels, size), step, details);
}

void SummaryWriter::add_image_grid(std::string_view tag, const Pixels& pixels, BatchSize size,
                                   std::int64_t step, const GridOptions& grid, const Details& details) {
  add_image(tag, encode_image_grid(pixels, size, grid), step, details);
}

void SummaryWriter::add_image_with_boxes(std::string_view tag, const Pixels& pixels, ImageSize size,
                                         std::span<const Box> boxes, std::int64_t step,
                                         const Details& details) {
  add_image(tag, encode_image_with_boxes(pixels, size, boxes), step, details);
}

void SummaryWriter::add_video(std::string_view tag, std::span<const std::uint8_t> pixels, VideoSize size,
                              double frames_per_second, std::int64_t step, const Details& details) {
  add_image(tag, encode_video(pixels, size, frames_per_second), step, details);
}

void SummaryWriter::add_videos(std::string_view tag, const Pixels& pixels, VideoBatchSize size,
                               double frames_per_second, std::int64_t step, const Details& details) {
  add_image(tag, encode_videos(pixels, size, frames_per_second), step, details);
}

void SummaryWriter::add_audio(std::string_view tag, std::span<const float> samples, std::int64_t sample_rate,
                              std::int64_t channels, std::int64_t step, const Details& details) {
  constexpr std::int64_t kWav = 11;  // AudioPluginData.Encoding
  std::string content;
  wire::integer(content, 2, kWav);
  const std::string wav = encode_wav(samples, sample_rate, channels);
  const std::string message =
      encode_audio_message(wav, sample_rate, channels, static_cast<std::int64_t>(samples.size()) / channels);
  implementation_->add(tag, Kind::kAudio, field::kAudio, message, step, details, content);
}

void SummaryWriter::add_text(std::string_view tag, std::string_view markdown, std::int64_t step,
                             const Details& details) {
  implementation_->add(tag, Kind::kText, field::kTensor, encode_text_tensor(valid_utf8(markdown)), step,
                       details);
}

void SummaryWriter::add_graph(const Graph& graph, std::optional<double> wall_time) {
  std::unordered_set<std::string> nodes;
  for (const GraphNode& node : graph.nodes) nodes.insert(node.name);
  implementation_->set_graph(std::move(nodes), [&, encoded = encode_graph(graph)] {
    implementation_->add_event("graph", implementation_->time_of(wall_time), 0, field::kGraphDef, encoded);
  });
}

void SummaryWriter::add_graph_profile(std::string_view tag, std::span<const NodeProfile> nodes,
                                      std::int64_t step) {
  if (tag.empty()) throw UsageError("a profile's tag is empty; TensorBoard could not show it");
  implementation_->check_nodes(nodes);
  std::string tagged;
  wire::bytes(tagged, 1, valid_utf8(tag));
  wire::bytes(tagged, 2, encode_step_stats(nodes));
  implementation_->add_event(tag, implementation_->now(), step, field::kTaggedRunMetadata, tagged);
}

void SummaryWriter::add_hparams_start(const HParams& hparams, std::optional<double> start_time) {
  implementation_->start_session(hparams, start_time);
}

void SummaryWriter::add_hparams_end(SessionStatus status, std::optional<double> end_time) {
  implementation_->end_session(status, end_time);
}

void SummaryWriter::add_hparams_experiment(const HParamsExperiment& experiment) {
  implementation_->add_plugin_record("_hparams_/experiment", "hparams",
                                     encode_experiment(experiment, implementation_->now()), "");
}

void SummaryWriter::add_pr_curve(std::string_view tag, std::span<const std::uint8_t> labels,
                                 std::span<const float> scores, std::int64_t step, int thresholds,
                                 const Details& details, std::span<const float> weights) {
  const std::vector<float> curve = make_pr_curve(labels, scores, weights, thresholds);
  const std::int64_t shape[] = {6, thresholds};
  implementation_->add(tag, Kind::kPrCurve, field::kTensor, encode_float_tensor(curve, shape), step, details,
                       pr_curve_content(static_cast<std::size_t>(thresholds)));
}

void SummaryWriter::add_pr_curve(std::string_view tag, const PrCurve& curve, std::int64_t step,
                                 const Details& details) {
  const std::array rows = {curve.true_positives,  curve.false_positives, curve.true_negatives,
                           curve.false_negatives, curve.precision,       curve.recall};
  const std::size_t thresholds = rows[0].size();
  std::vector<float> values;
  for (const auto& row : rows) {
    if (thresholds == 0 || row.size() != thresholds) {
      throw UsageError("\"" + std::string(tag) +
                       "\": a PR curve's six lists must have the same length, 1 or more");
    }
    values.insert(values.end(), row.begin(), row.end());
  }
  const std::int64_t shape[] = {6, static_cast<std::int64_t>(thresholds)};
  implementation_->add(tag, Kind::kPrCurve, field::kTensor, encode_float_tensor(values, shape), step, details,
                       pr_curve_content(thresholds));
}

void SummaryWriter::add_mesh(std::string_view tag, const Mesh& mesh, std::int64_t step,
                             const Details& details) {
  check_mesh(mesh);
  if (tag.empty()) throw UsageError("a tag is empty; TensorBoard could not show it");
  constexpr int kVertex = 1, kFace = 2, kColor = 3;
  constexpr int kInt32 = 3, kUint8 = 4, kFloat = 1;  // DataType
  const int components =
      1 << kVertex | (mesh.faces.empty() ? 0 : 1 << kFace) | (mesh.colors.empty() ? 0 : 1 << kColor);
  const auto add = [&](const char* suffix, int content_type, int data_type, auto values) {
    if (values.empty()) return;
    const std::int64_t shape[] = {mesh.batch, static_cast<std::int64_t>(values.size()) / 3 / mesh.batch, 3};
    const std::string_view bytes(reinterpret_cast<const char*>(values.data()), values.size_bytes());
    implementation_->add(std::string(tag) + suffix, Kind::kMesh, field::kTensor,
                         encode_tensor(data_type, bytes, shape), step, details,
                         encode_mesh_content(valid_utf8(tag), content_type, shape, components, mesh.config));
  };
  add("_VERTEX", kVertex, kFloat, mesh.vertices);
  add("_FACE", kFace, kInt32, mesh.faces);
  add("_COLOR", kColor, kUint8, mesh.colors);
}

void SummaryWriter::add_embedding(std::string_view tag, std::span<const float> points,
                                  std::int64_t dimensions, const EmbeddingLabels& labels,
                                  const EmbeddingPictures& pictures, std::int64_t step) {
  write_embedding(log_dir(), tag, points, dimensions, labels, pictures, step);
}

void SummaryWriter::add_tensor(std::string_view tag, Values values, std::span<const std::int64_t> shape,
                               std::int64_t step, const Details& details) {
  if (!fits(shape, values.count())) {
    std::string extents;
    for (const std::int64_t extent : shape) extents += (extents.empty() ? "" : ", ") + std::to_string(extent);
    throw UsageError("\"" + std::string(tag) + "\": a tensor's shape is [" + extents + "], but " +
                     std::to_string(values.count()) + " values were given");
  }
  if (values.type() == ValueType::kBFloat16) return add_tensor(tag, to_floats(values), shape, step, details);
  const auto bytes = values.bytes();
  const std::string_view content(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  implementation_->add(tag, Kind::kTensor, field::kTensor,
                       encode_tensor(static_cast<int>(values.type()), content, shape), step, details);
}

void SummaryWriter::add_custom_scalars_layout(const CustomScalarsLayout& layout) {
  implementation_->add_plugin_record("custom_scalars__config__", "custom_scalars", "",
                                     encode_text_tensor(encode_layout(layout)));
}

void SummaryWriter::flush() { implementation_->flush(false); }

void SummaryWriter::sync() { implementation_->flush(true); }

FilePosition SummaryWriter::position() const { return implementation_->log->end(); }

void SummaryWriter::close() { implementation_->close(SessionStatus::kSuccess); }

const std::filesystem::path& SummaryWriter::log_dir() const { return implementation_->log_dir; }

const std::filesystem::path& SummaryWriter::path() const { return implementation_->log->path(); }

}  // namespace sweep::tbwriter
