// Fuzz target: any bytes are a run.json or give a DataError, and what was read is read back from what is
// written of it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/base/error.h"
#include "runmanager/records/recorded_config.h"
#include "runmanager/records/results.h"
#include "runmanager/records/run_identity.h"
#include "runmanager/records/run_record_json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sweep;
  RunRecord record;
  try {
    record = parse_run_record({reinterpret_cast<const char*>(data), size}, "FILE");
  } catch (const DataError&) {
    return 0;
  }
  const std::string text = run_record_text(record);
  if (run_record_text(parse_run_record(text, "FILE")) != text) std::abort();
  identity_of(record.config, record.device, record.provenance);
  try {
    recorded_config(record);
  } catch (const Error&) {
  }
  return 0;
}
