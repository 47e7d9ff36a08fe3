// sweep.json: the sweep file as it was expanded.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "runmanager/config/run_config.h"

namespace sweep {

/// The text of sweep.json: the resolved file, the names of the runs, those that were left out with the
/// reasons, and `program`, the provenance, whose last member is a checksum of all the rest.
std::string sweep_file_text(const Sweep& sweep, const nlohmann::ordered_json& program);

/// The text of `file`, a sweep.json; "" if there is none. Throws ConfigError if it is no record but a sweep
/// file that somebody has written, and ReadError if it cannot be read.
std::string sweep_record_text(const std::filesystem::path& file);

/// What is wrong with the text of a sweep.json, whose content is `json`; "" if nothing is. Those of older
/// versions have no checksum, so nothing is found in them.
std::string sweep_file_problem(const std::string& text, nlohmann::ordered_json json);

}  // namespace sweep
