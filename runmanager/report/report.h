// A sweep as one HTML page: the answer, charts, pictures, tables, and their origin.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runmanager/report/report_data.h"

namespace sweep {

/// What the page shows, as JSON, for html_page(): texts, tables, charts, pictures. `date`: when it was made,
/// see utc_time(). The same sweeps give the same model, except for the date. Throws DataError for a sweep
/// file that cannot be read.
nlohmann::ordered_json report_model(const ReportData& data, const std::string& date);

/// Writes the charts with their data to FOLDER/NAME.vg.json, for use elsewhere, and makes the folder.
/// Returns their paths. Throws IoError.
std::vector<std::filesystem::path> write_chart_specs(const ReportData& data,
                                                     const std::filesystem::path& folder);

}  // namespace sweep
