// Fuzz target: any bytes are an events file; only records with right checksums are read. Since a
// fuzzer rarely finds a checksum, bytes that begin with an even one are taken as an event's payload.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/base/error.h"
#include "tbwriter/event_reader.h"
#include "tbwriter/record.h"
#include "tests/support/memory_file.h"

namespace {

void decode(std::string_view payload) {
  using namespace sweep::tbwriter;
  try {
    DecodedSession session;
    for (const DecodedValue& value : decode_event(payload).values)
      decode_session(value.plugin_content, session);
  } catch (const sweep::DataError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sweep::tbwriter;
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  std::string file = bytes;
  if (data[0] % 2 == 0) {
    decode(bytes);
    file.clear();
    append_record(file, bytes);
    file += bytes;  // a whole record, then damage
  }
  const sweep::test::MemoryFile memory(file);
  EventReader reader(memory.path());
  std::size_t whole = 0;
  do {
    while (const auto payload = reader.next()) {
      whole += kRecordHeader + payload->size() + kRecordFooter;
      decode(*payload);
    }
  } while (reader.skip_record());
  if (whole > reader.position() || reader.position() > file.size()) std::abort();
  if (data[0] % 2 == 0 && reader.position() < kRecordHeader + bytes.size() + kRecordFooter) std::abort();
  if ((reader.end() == ReadEnd::kEnd) != (reader.position() == file.size())) std::abort();
  return 0;
}
