// The TFRecord framing of events: length, checksum of the length, payload, checksum of the payload; little
// endian. The checksum is CRC-32C (Castagnoli, RFC 3720).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sweep::tbwriter {

/// Returns the checksum of `bytes`, continuing from `before`: the checksum of the bytes in front of them, 0
/// for none. Uses instructions of the processor if it has them. Thread-safe.
std::uint32_t crc32c(std::string_view bytes, std::uint32_t before = 0);

/// The stored form of a checksum: rotated, plus a constant, because the CRC of data that contains its own CRC
/// is weak. As in LevelDB and TensorFlow.
constexpr std::uint32_t mask_crc(std::uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u; }

inline constexpr std::size_t kRecordHeader = 12;  // u64 length, u32 masked checksum of the length
inline constexpr std::size_t kRecordFooter = 4;   // u32 masked checksum of the payload

/// The largest payload that SummaryWriter writes: TensorBoard's server exits when it reads a huge length.
inline constexpr std::size_t kMaxWrittenPayload = (std::size_t{64} << 20) - kRecordHeader - kRecordFooter - 1;

/// The largest payload that is read, which other programs may have written: protobuf has no larger message.
inline constexpr std::uint64_t kMaxReadPayload = (std::uint64_t{1} << 31) - 1;

/// Begins a record at the end of `buffer` and returns its position. Append the payload to
/// `buffer`, then call end_record().
std::size_t begin_record(std::string& buffer);

/// Completes the record at `begin`: sets the length and both checksums.
void end_record(std::string& buffer, std::size_t begin);

/// Appends `payload` as one record.
void append_record(std::string& buffer, std::string_view payload);

/// Why there is no further record in a file.
enum class ReadEnd {
  kEnd,         // the file consists of complete records
  kTornTail,    // ends within a record: it is being written, or the writer was killed; nothing before is lost
  kZeroTail,    // ends in 12 or more zero bytes: the machine crashed before the data reached the disk
  kBadPayload,  // a record's payload is damaged; EventReader::skip_record() continues after it
  kBadLength,   // a record's length is damaged, so later records cannot be found
};

/// The record at the beginning of some bytes of a file.
struct RecordView {
  ReadEnd end = ReadEnd::kTornTail;  // kEnd: the payload is valid
  std::string_view payload;
  std::size_t size = 0;  // of the record with its framing, if the length is known; otherwise 0
};

/// Reads the record at the beginning of `bytes` and verifies both checksums. Never throws.
RecordView read_record(std::string_view bytes);

}  // namespace sweep::tbwriter
