// Reads event files record by record, verifies all checksums, and reports how a file ends. Decodes scalars,
// hyperparameters, texts and images from events of any program, and ignores everything else.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/file.h"
#include "tbwriter/plugin_data.h"
#include "tbwriter/record.h"

namespace sweep::tbwriter {

/// "ends within a record": a phrase for messages.
const char* describe(ReadEnd end);

/// Reads one file. Movable; not thread-safe. Holds one record in memory, up to 2 GiB, and the chunk that is
/// being read.
class EventReader {
 public:
  /// `begin`: where its first record begins, a position() of another reader. Throws DataError if the file
  /// cannot be opened, or is a pipe, a device or a directory.
  explicit EventReader(const std::filesystem::path& file, std::uint64_t begin = 0);

  /// Returns the payload of the next record, a serialised Event, valid until the next call; nothing if there
  /// is none, and end() says why. Throws DataError if reading fails.
  std::optional<std::string_view> next();

  /// Why next() returned nothing. After kEnd and kTornTail, next() may be called
  /// again once the file has grown.
  ReadEnd end() const { return end_; }

  /// Size in bytes of the records that were read or skipped: the file truncated to this size is intact.
  std::uint64_t position() const { return position_; }

  /// Skips a record with a damaged payload. Returns whether there was one.
  bool skip_record();

 private:
  bool read_more(std::size_t wanted);
  bool rest_is_zero();

  std::filesystem::path path_;
  FileDescriptor file_;
  std::size_t chunk_;   // bytes of the next read
  std::string buffer_;  // bytes from begin_ on have not been returned yet
  std::size_t begin_ = 0;
  std::size_t damaged_ = 0;  // size of the damaged record at begin_
  bool stopped_ = false;     // after a damaged length
  std::uint64_t position_ = 0;
  ReadEnd end_ = ReadEnd::kEnd;
};

/// The result of reading a whole file.
struct FileCheck {
  std::uint64_t records = 0;  // complete records before the first damage
  std::uint64_t bytes = 0;    // of these records
  ReadEnd end = ReadEnd::kEnd;
};

/// Reads all of `file`. Throws DataError if it cannot be read.
FileCheck check_events_file(const std::filesystem::path& file);

/// An encoded image. The view points into the payload.
struct DecodedImage {
  std::int64_t width = 0, height = 0;  // in pixels, as the event says
  std::string_view bytes = {};         // PNG, or what else the writer chose
};

/// One value of an event. The views point into the payload.
struct DecodedValue {
  std::string_view tag = {};
  std::string_view plugin = {};  // from its metadata, which only the first value of a tag has; "" without
  std::string_view plugin_content = {};  // the plugin's encoded message
  std::optional<double> scalar = {};     // a simple_value, or a tensor of one number
  std::optional<DecodedImage> image = {};
  std::optional<std::string_view> text = {};  // the first string of a tensor
};

/// One event. The views point into the payload.
struct DecodedEvent {
  double wall_time = 0;  // seconds since 1970
  std::int64_t step = 0;
  std::string_view file_version = {};
  bool session_start = false;  // older records of the run with this step or a later one are void
  std::vector<DecodedValue> values = {};
};

/// Decodes a record's payload. Throws DataError if it is not an Event. Thread-safe.
DecodedEvent decode_event(std::string_view payload);

/// The hparams session of a run.
struct DecodedSession {
  HParams hparams = {};
  std::optional<double> start_time = {};
  std::optional<SessionStatus> status = {};
  std::optional<double> end_time = {};
};

/// Adds the content of one hparams record to `session`. Returns whether it has the start or end of a session.
/// Throws DataError if it is not an HParamsPluginData.
bool decode_session(std::string_view plugin_content, DecodedSession& session);

}  // namespace sweep::tbwriter
