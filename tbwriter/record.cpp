#include "tbwriter/record.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace sweep::tbwriter {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied from memory");

template <class Integer>
Integer load(const char* p) {
  Integer value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

#if defined(__x86_64__)
const bool kHasInstruction = __builtin_cpu_supports("sse4.2") != 0;

[[gnu::target("sse4.2")]] std::uint32_t update_by_instruction(std::string_view bytes, std::uint32_t crc) {
  for (; bytes.size() >= 8; bytes.remove_prefix(8))
    crc = static_cast<std::uint32_t>(_mm_crc32_u64(crc, load<std::uint64_t>(bytes.data())));
  for (const char byte : bytes) crc = _mm_crc32_u8(crc, static_cast<unsigned char>(byte));
  return crc;
}
#endif

// Like the instruction and ISA-L: without the inversions before and after.
std::uint32_t update(std::string_view bytes, std::uint32_t crc) {
#if defined(__x86_64__)
  // For records of scalars, which are most, ISA-L takes ten times as long: it walks their ends byte by byte.
  if (bytes.size() < 256 && kHasInstruction) return update_by_instruction(bytes, crc);
#endif
  constexpr std::size_t kMaxBytes = std::numeric_limits<int>::max();
  for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), kMaxBytes))) {
    auto* data = reinterpret_cast<unsigned char*>(const_cast<char*>(bytes.data()));  // is only read
    crc = crc32_iscsi(data, static_cast<int>(std::min(bytes.size(), kMaxBytes)), crc);
  }
  return crc;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes, std::uint32_t before) { return ~update(bytes, ~before); }

std::size_t begin_record(std::string& buffer) {
  const std::size_t begin = buffer.size();
  buffer.append(kRecordHeader, '\0');
  return begin;
}

void end_record(std::string& buffer, std::size_t begin) {
  char* header = buffer.data() + begin;
  const std::string_view payload(header + kRecordHeader, buffer.size() - begin - kRecordHeader);
  const std::uint64_t length = payload.size();
  std::memcpy(header, &length, sizeof length);
  const std::uint32_t head = mask_crc(crc32c({header, sizeof length})), tail = mask_crc(crc32c(payload));
  std::memcpy(header + sizeof length, &head, sizeof head);
  buffer.append(reinterpret_cast<const char*>(&tail), sizeof tail);
}

void append_record(std::string& buffer, std::string_view payload) {
  const std::size_t begin = begin_record(buffer);
  buffer += payload;
  end_record(buffer, begin);
}

RecordView read_record(std::string_view bytes) {
  RecordView record;
  if (bytes.size() < kRecordHeader) return record;
  const auto length = load<std::uint64_t>(bytes.data());
  if (mask_crc(crc32c(bytes.substr(0, 8))) != load<std::uint32_t>(bytes.data() + 8) ||
      length > kMaxReadPayload) {
    record.end = ReadEnd::kBadLength;
    return record;
  }
  record.size = kRecordHeader + static_cast<std::size_t>(length) + kRecordFooter;
  if (bytes.size() < record.size) return record;
  record.payload = bytes.substr(kRecordHeader, static_cast<std::size_t>(length));
  const auto stored = load<std::uint32_t>(bytes.data() + record.size - kRecordFooter);
  const bool right = mask_crc(crc32c(record.payload)) == stored;
  record.end = right ? ReadEnd::kEnd : ReadEnd::kBadPayload;
  return record;
}

}  // namespace sweep::tbwriter
