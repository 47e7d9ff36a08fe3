// What a SummaryWriter knows of its run: its tags, its session, its graph, its lines; and what several kinds
// of data are encoded with. Not part of the installed interface.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "tbwriter/event_log.h"
#include "tbwriter/message.h"
#include "tbwriter/summary_writer.h"

namespace sweep::tbwriter {

// Field numbers of Event, and of Summary.Value.
inline constexpr std::uint32_t kWallTime = 1, kStep = 2, kFileVersion = 3, kGraphDef = 4, kSummary = 5,
                               kSessionLog = 7, kTaggedRunMetadata = 8;
inline constexpr std::uint32_t kTag = 1, kSimpleValue = 2, kImageValue = 4, kHistogramValue = 5,
                               kAudioValue = 6, kTensorValue = 8, kMetadata = 9;

std::string encode_shape(std::span<const std::int64_t> extents);  // TensorShapeProto
/// TensorProto, values in row-major order. bfloat16 becomes float.
std::string encode_tensor(const Values& values, std::span<const std::int64_t> shape);
/// TensorProto of texts, or of files.
std::string encode_strings(const std::vector<std::string_view>& strings, std::span<const std::int64_t> shape);

/// SummaryMetadata.data_class.
enum class DataClass { kScalar = 1, kTensor = 2, kBlobs = 3 };

/// A kind of data. TensorBoard shows only the first kind that is written for a tag.
struct Kind {
  const char* name = "";               // in messages
  std::uint32_t field = kTensorValue;  // of Summary.Value
  const char* plugin = "";             // in metadata
  DataClass data_class = DataClass::kTensor;
  bool needs_metadata = true;  // TensorBoard recognises the other kinds without metadata
};
inline constexpr Kind kScalar = {"a scalar", kSimpleValue, "scalars", DataClass::kScalar, false};
inline constexpr Kind kScalarTensor = {"a scalar of the new style", kTensorValue, "scalars",
                                       DataClass::kScalar};
inline constexpr Kind kHistogram = {"a histogram", kHistogramValue, "histograms", DataClass::kTensor, false};
inline constexpr Kind kImage = {"an image", kImageValue, "images", DataClass::kBlobs, false};
inline constexpr Kind kImages = {"a batch of images", kTensorValue, "images", DataClass::kBlobs};
inline constexpr Kind kText = {"text", kTensorValue, "text", DataClass::kTensor};
inline constexpr Kind kAudio = {"audio", kAudioValue, "audio", DataClass::kBlobs};
inline constexpr Kind kPrCurve = {"a PR curve", kTensorValue, "pr_curves", DataClass::kTensor};
inline constexpr Kind kMesh = {"a mesh", kTensorValue, "mesh", DataClass::kTensor};
inline constexpr Kind kTensor = {"a tensor", kTensorValue, "tensor", DataClass::kTensor};

/// What has been written for one tag.
struct TagState {
  std::string name = {};  // as written: valid UTF-8
  const Kind* kind = nullptr;
  std::string metadata = {};  // serialised SummaryMetadata, until it is written; empty if not needed
  std::optional<std::int64_t> last_step = {};
  bool warned = false;
};

/// A value to be added: the number of a scalar, or the message of another kind.
struct Point {
  std::string_view tag = {};
  const Kind* kind = nullptr;
  float number = 0;
  std::string_view message = {};
  std::string_view plugin_content = {};
  TagState* state = nullptr;  // this and the rest is set by State::add()
  bool with_metadata = false;
  std::size_t size = 0;  // of the Summary.Value
};

struct SummaryWriter::State {
  State(const std::filesystem::path& directory, const WriterOptions& writer_options);

  double now() const;
  /// The given time, or now. Throws UsageError if it is not finite.
  double time_of(const std::optional<double>& wall_time) const;
  void warn(const std::string& message) const noexcept;

  /// Adds one event with all points, or nothing.
  void add(std::span<Point> points, std::int64_t step, const Details& details);
  /// Adds an event with one value.
  void add(std::string_view tag, const Kind& kind, std::string_view message, std::int64_t step,
           const Details& details, std::string_view plugin_content = {});
  /// Adds an event that is no summary; `name` names it in messages. Calls `accept` with the queue locked,
  /// once nothing else can fail; if that throws, nothing is added.
  void add_event(std::string_view name, double wall_time, std::int64_t step, std::uint32_t field,
                 std::string_view content, const std::function<void()>& accept = {});
  /// Adds a value for a plugin that reserves a tag and reads its data from the metadata; `tensor` may be
  /// empty. `accept`: see add_event().
  void add_plugin_record(std::string_view tag, const char* plugin, std::string_view content,
                         std::string_view tensor, const std::function<void()>& accept = {});

  void flush(bool sync);

  /// For what does not become an event of this file. Throws UsageError after close(), and for an empty tag.
  void check_open(std::string_view tag);
  /// Throws UsageError if TensorBoard could not show a point with this tag, kind and step. Returns what is
  /// known of the tag.
  TagState* find(std::string_view tag, const Kind& kind, std::int64_t step);
  /// The same; the details and plugin content of the first point become the metadata of the tag.
  TagState& state_of(const Point& point, std::int64_t step, const Details& details);
  /// Remembers that a point has been encoded, with the tag's metadata.
  void record(TagState& tag, std::int64_t step);
  /// Throws UsageError if TensorBoard's HParams tab could not show a scalar with this step.
  static void check_metric_step(std::int64_t step);

  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  enum class Session { kNone, kStarted, kEnded };

  const std::filesystem::path log_dir;
  const WriterOptions options;
  const int exceptions = std::uncaught_exceptions();
  std::shared_ptr<EventLog> log;  // its thread may outlive this object and does not use it

  // Guarded by the lock of the log's queue.
  std::unordered_map<std::string, TagState, TextHash, std::equal_to<>> tags;
  std::int64_t largest_step = 0;  // of a scalar
  bool limits_steps = false;      // has been a session: refuses scalars with steps that break the HParams tab
  Session session = Session::kNone;
  bool closing = false;

  std::mutex mutex;                                             // guards the rest
  std::map<std::string, std::unique_ptr<SummaryWriter>> lines;  // of add_scalars(), by directory
  std::optional<std::unordered_set<std::string>> graph_nodes;   // names, once there is a graph
};

}  // namespace sweep::tbwriter
