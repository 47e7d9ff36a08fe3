// How records travel between a sweep and its workers, inside the messages of proto/worker.proto: as the text
// that run.json has.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "runmanager/records/results.h"

namespace sweep {

std::string encode(const nlohmann::ordered_json& json);
std::string encode(const RunRecord& record);
std::string encode(const EpochRecord& record);

/// The inverse of encode(). Throw DataError, naming `where`, if the bytes are damaged or are something else.
nlohmann::ordered_json decode_json(std::string_view bytes, std::string_view where);
RunRecord decode_run(std::string_view bytes, std::string_view where);
EpochRecord decode_epoch(std::string_view bytes, std::string_view where);

}  // namespace sweep
