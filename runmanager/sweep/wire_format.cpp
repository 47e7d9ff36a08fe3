#include "runmanager/sweep/wire_format.h"

#include <fmt/format.h>

#include "core/base/error.h"
#include "runmanager/records/run_record_json.h"
#include "runmanager/text/json_output.h"

namespace sweep {

using Json = nlohmann::ordered_json;

std::string encode(const Json& json) { return compact_json_text(json); }

std::string encode(const RunRecord& record) { return encode(to_json(record)); }

std::string encode(const EpochRecord& record) { return encode(to_json(record)); }

Json decode_json(std::string_view bytes, std::string_view where) {
  try {
    return Json::parse(bytes);
  } catch (const nlohmann::json::exception& error) {
    throw DataError(fmt::format("{} is damaged: {}", where, error.what()));
  }
}

RunRecord decode_run(std::string_view bytes, std::string_view where) {
  return run_record_from_json(decode_json(bytes, where), where);
}

EpochRecord decode_epoch(std::string_view bytes, std::string_view where) {
  return epoch_record_from_json(decode_json(bytes, where), where);
}

}  // namespace sweep
