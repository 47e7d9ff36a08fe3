// Reads event files record by record, checking every byte, and says how a file ends.
#pragma once

#include <cstdint>
#include <filesystem>
#include <istream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace sweep::tbwriter {

/// Why a file gives no further record.
enum class ReadEnd {
  kEnd,         // all bytes are whole records
  kTornTail,    // it ends within a record: still being written, or its writer was killed. Nothing before is
                // lost.
  kZeroTail,    // it ends in twelve or more zero bytes: the machine went down before the file system had the
                // data
  kBadPayload,  // a record's payload is damaged; skip_record() goes on after it
  kBadLength,   // a record's length is damaged: what comes after cannot be found
};

/// "ends within a record", for people.
const char* describe(ReadEnd end);

/// One file, from its beginning. Movable; not thread-safe. Takes at most 64 MiB and a few of memory.
class EventReader {
 public:
  /// Throws DataError if the file cannot be opened.
  explicit EventReader(const std::filesystem::path& file);

  /// Reads from a stream instead; `name` is for messages.
  EventReader(std::unique_ptr<std::istream> stream, std::string name);

  /// Returns the next whole record's payload (a serialised Event), valid until the next call, or nothing at
  /// end(). Throws DataError if the system cannot read the file.
  std::optional<std::string_view> next();

  /// Why next() returned nothing. Of a file that grows, next() may be called again after kEnd and kTornTail.
  ReadEnd end() const { return end_; }

  /// Bytes of whole records read and skipped so far: where the file could be cut to be intact.
  std::uint64_t position() const { return position_; }

  /// Goes past a record whose payload is damaged. Returns whether there was one.
  bool skip_record();

 private:
  bool read_more(std::size_t wanted);
  bool rest_is_zero();

  std::string name_;
  std::unique_ptr<std::istream> stream_;
  std::size_t chunk_;   // bytes to read next
  std::string buffer_;  // bytes [begin_, end of buffer_) are not returned yet
  std::size_t begin_ = 0;
  std::size_t damaged_ = 0;  // size of the damaged record at begin_
  bool stopped_ = false;     // after a damaged length
  std::uint64_t position_ = 0;
  ReadEnd end_ = ReadEnd::kEnd;
};

/// What a whole file holds.
struct FileCheck {
  std::uint64_t records = 0;  // whole ones, before the first damage
  std::uint64_t bytes = 0;    // that these take
  std::uint64_t size = 0;     // of the file
  ReadEnd end = ReadEnd::kEnd;
};

/// Reads all of `file`. Throws DataError if it cannot be read.
FileCheck check_events_file(const std::filesystem::path& file);

}  // namespace sweep::tbwriter
