// Reads event files record by record, verifies all checksums, and reports how a file ends.
#pragma once

#include <cstdint>
#include <filesystem>
#include <istream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace sweep::tbwriter {

/// Why there is no further record.
enum class ReadEnd {
  kEnd,         // the file consists of complete records
  kTornTail,    // ends within a record: it is being written, or the writer was killed; nothing before is lost
  kZeroTail,    // ends in 12 or more zero bytes: the machine crashed before the data reached the disk
  kBadPayload,  // a record's payload is damaged; skip_record() continues after it
  kBadLength,   // a record's length is damaged, so later records cannot be found
};

/// "ends within a record": a phrase for messages.
const char* describe(ReadEnd end);

/// Reads one file from its beginning. Movable; not thread-safe. Holds one record in memory, up to 2 GiB, and
/// the chunk that is being read.
class EventReader {
 public:
  /// Throws DataError if the file cannot be opened, or is a pipe, a device or a directory.
  explicit EventReader(const std::filesystem::path& file);

  /// Reads from a stream; `name` names the file in messages.
  EventReader(std::unique_ptr<std::istream> stream, std::string name);

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

  std::string name_;
  std::unique_ptr<std::istream> stream_;
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
  std::uint64_t size = 0;     // of the file
  ReadEnd end = ReadEnd::kEnd;
};

/// Reads all of `file`. Throws DataError if it cannot be read.
FileCheck check_events_file(const std::filesystem::path& file);

}  // namespace sweep::tbwriter
