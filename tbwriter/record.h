// The frame around every event in a file: length, its checksum, payload, its checksum; all little endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sweep::tbwriter {

inline constexpr std::size_t kRecordHeader = 12;  // u64 length, u32 masked checksum of the length
inline constexpr std::size_t kRecordFooter = 4;   // u32 masked checksum of the payload

/// Larger payloads are never written, and read as damage: TensorBoard's server ends when it meets a huge
/// length.
inline constexpr std::size_t kLongestPayload = (std::size_t{64} << 20) - kRecordHeader - kRecordFooter - 1;

/// Begins a record at the end of `buffer`. Append the payload, then call end_record with the returned
/// position.
std::size_t begin_record(std::string& buffer);

/// Fills in what begin_record left open, and appends the footer.
void end_record(std::string& buffer, std::size_t begin);

/// Appends `payload` as one record.
void append_record(std::string& buffer, std::string_view payload);

/// What stands at the beginning of some bytes of a file.
struct RecordView {
  enum class State {
    kWhole,       // payload is valid
    kIncomplete,  // the bytes end before the record does: it may still be being written
    kBadLength,   // the length is damaged, so where the next record begins is unknown
    kBadPayload,  // the payload is damaged; the next record begins after `size` bytes
  };
  State state = State::kIncomplete;
  std::string_view payload;
  std::size_t size = 0;  // of the whole record, where the length is right
};

/// Reads the record at the beginning of `bytes`, checking both checksums. Never throws.
RecordView read_record(std::string_view bytes);

}  // namespace sweep::tbwriter
