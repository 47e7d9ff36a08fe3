// The description of samples that a run records.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "core/data/dataset.h"

namespace sweep {

nlohmann::ordered_json to_json(const SampleFormat& format);
/// The inverse. Throws DataError, which `where` begins, if `json` is no such description.
SampleFormat sample_format_from_json(const nlohmann::ordered_json& json, std::string_view where);

}  // namespace sweep
