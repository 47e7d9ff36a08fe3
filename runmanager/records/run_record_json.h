// run.json: the record of a run as JSON, and back.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "runmanager/config/run_config.h"
#include "runmanager/records/results.h"

namespace sweep {

nlohmann::ordered_json to_json(const RunRecord& run);
/// The same without "epochs", "config" and "provenance", which are most of it and rarely change.
nlohmann::ordered_json brief_json(const RunRecord& run);
/// How the run ended: "status" and "metrics"; "error", "stopped" and "run_seconds" where there are any.
nlohmann::ordered_json ending_json(const RunRecord& run);
/// The inverse of to_json(). Throws DataError, naming `where`, if `json` is not a run record.
RunRecord run_record_from_json(nlohmann::ordered_json json, std::string_view where);
/// The text of run.json: to_json(), indented, and a last member "crc32c" with the checksum of the rest.
std::string run_record_text(const RunRecord& run);
/// The inverse. Throws DataError, naming `where`, if the text is damaged. Text without a checksum is not
/// checked: older versions wrote none.
RunRecord parse_run_record(std::string_view text, std::string_view where);
/// "events" and "batches".
nlohmann::ordered_json to_json(const RunPosition& position);
/// The inverse. Throws nlohmann::json::exception for anything else.
RunPosition run_position_from_json(const nlohmann::ordered_json& json);
/// The value of a metric: an integer for a count, null for none; see json_number().
nlohmann::ordered_json metric_json(const Metric& metric, const std::optional<double>& value);
nlohmann::ordered_json to_json(const EpochRecord& epoch);
/// The inverse. Throws DataError, naming `where`, if `json` is no such record.
EpochRecord epoch_record_from_json(const nlohmann::ordered_json& json, std::string_view where);
/// Adds the epochs of a run, as to_json() has written them, and takes the values of the last one out of
/// RunRecord::metrics.
void add_epochs(std::span<const nlohmann::ordered_json> epochs, RunRecord& run);
/// Reads a run.json. Throws DataError, naming the file.
RunRecord read_run_record(const std::filesystem::path& path);
/// read(path); nothing if the file is missing or damaged. Throws ReadError if it cannot be read.
std::optional<RunRecord> whole_record(RunRecord (*read)(const std::filesystem::path&),
                                      const std::filesystem::path& path);

nlohmann::ordered_json to_json(const ParamValue& value);
/// {"lr": 0.01, "device": "cpu"}, in the order given.
nlohmann::ordered_json to_json(const Params& params);
/// The inverse. Throws nlohmann::json::exception if `json` is no object of simple values.
Params params_from_json(const nlohmann::ordered_json& json);

}  // namespace sweep
