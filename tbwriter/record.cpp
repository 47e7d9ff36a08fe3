#include "tbwriter/record.h"

#include <bit>
#include <cstring>

#include "tbwriter/crc32c.h"

namespace sweep::tbwriter {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied from memory");

template <class Integer>
Integer load(const char* p) {
  Integer value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

}  // namespace

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
    record.state = RecordView::State::kBadLength;
    return record;
  }
  record.size = kRecordHeader + static_cast<std::size_t>(length) + kRecordFooter;
  if (bytes.size() < record.size) return record;
  record.payload = bytes.substr(kRecordHeader, static_cast<std::size_t>(length));
  const auto stored = load<std::uint32_t>(bytes.data() + record.size - kRecordFooter);
  const bool right = mask_crc(crc32c(record.payload)) == stored;
  record.state = right ? RecordView::State::kWhole : RecordView::State::kBadPayload;
  return record;
}

}  // namespace sweep::tbwriter
