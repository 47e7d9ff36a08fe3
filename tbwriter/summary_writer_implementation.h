// The implementation of SummaryWriter: the tags, sessions and lines of a run, and how its events are encoded.
// Not part of the installed interface.
#pragma once

#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>

#include "tbwriter/event_log.h"
#include "tbwriter/summary_writer.h"
#include "tbwriter/tag_table.h"
#include "tbwriter/wire.h"

namespace sweep::tbwriter {

// Field numbers of Event, Summary and Summary.Value.
namespace field {
inline constexpr std::uint32_t kWallTime = 1, kStep = 2, kFileVersion = 3, kGraphDef = 4, kSummary = 5,
                               kSessionLog = 7, kTaggedRunMetadata = 8;
inline constexpr std::uint32_t kValue = 1;
inline constexpr std::uint32_t kTag = 1, kSimpleValue = 2, kImage = 4, kHistogram = 5, kAudio = 6,
                               kTensor = 8, kMetadata = 9;
}  // namespace field

/// The member of Summary.Value's oneof: its key and number, or its key and length, then the message.
struct Member {
  explicit Member(float scalar) { wire::always_float(head, field::kSimpleValue, scalar); }
  Member(std::uint32_t field, std::string_view message) : body(message) {
    wire::key(head, field, wire::kBytes);
    wire::varint(head, message.size());
  }
  std::string head;
  std::string_view body;
};

/// A value to be added, and how it is encoded.
struct Point {
  std::string_view tag;
  Kind kind;
  Member member;
  std::string_view plugin_content = {};
  TagState* state = nullptr;
  bool with_metadata = false;
  std::size_t size = 0;  // of the Summary.Value
};

class SummaryWriter::Implementation {
 public:
  Implementation(const std::filesystem::path& directory, const WriterOptions& writer_options);
  ~Implementation();  // ignores errors; close() reports them

  double now() const;
  /// The given time, or now. Throws UsageError if it is not finite.
  double time_of(const std::optional<double>& wall_time) const;
  void warn(const std::string& message) const;

  /// Adds one event with all points, or nothing.
  void add(std::span<Point> points, std::int64_t step, const Details& details);

  /// Adds an event with one value, whose message is of `field`.
  void add(std::string_view tag, Kind kind, std::uint32_t field, std::string_view message, std::int64_t step,
           const Details& details, std::string_view plugin_content = {}) {
    Point point{tag, kind, Member(field, message), plugin_content};
    add({&point, 1}, step, details);
  }

  /// Adds an event that is no summary; `name` names it in messages.
  void add_event(std::string_view name, double wall_time, std::int64_t step, std::uint32_t field,
                 std::string_view content);

  /// Adds a value for a plugin that reserves a tag and reads its data from the metadata; `tensor` may be
  /// empty.
  void add_plugin_record(std::string_view tag, std::string_view plugin, std::string_view content,
                         std::string_view tensor);

  void start_session(const HParams& hparams, std::optional<double> start_time);
  void end_session(SessionStatus status, std::optional<double> end_time);

  /// The writer of a line of add_scalars(), which is a run in a subdirectory.
  SummaryWriter& line(const std::string& directory);

  void flush(bool sync);
  /// Closes all lines before it reports the first failure.
  void close(SessionStatus status);

  /// Calls add(), and from then on knows the names of the graph's nodes. Throws UsageError if it does
  /// already.
  template <class Add>
  void set_graph(std::unordered_set<std::string> nodes, Add add) {
    const std::lock_guard lock(mutex_);
    if (graph_nodes_) throw UsageError("this run has a graph already; TensorBoard shows one per run");
    add();
    graph_nodes_ = std::move(nodes);
  }

  /// Throws UsageError if a node is not one of the graph's.
  void check_nodes(std::span<const NodeProfile> nodes);

  bool destroyed_by_exception() const { return std::uncaught_exceptions() > exceptions_; }

  const std::filesystem::path log_dir;
  const WriterOptions options;
  std::shared_ptr<EventLog> log;  // its thread may outlive this object and uses nothing of it

 private:
  enum class Session { kNone, kStarted, kEnded };

  // Guarded by the lock of the log's queue.
  TagTable tags_;
  Session session_ = Session::kNone;
  bool closing_ = false;

  const int exceptions_;
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<SummaryWriter>> lines_;
  std::optional<std::unordered_set<std::string>> graph_nodes_;  // once there is a graph
};

}  // namespace sweep::tbwriter
