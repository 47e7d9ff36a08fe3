// A sweep as one HTML page: the answer in a few sentences, charts, pictures, the table of runs, why runs have
// no results, and the origin of the others.
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

// The parts of the page besides charts.

struct Headline {
  std::string best;  // "The best run reaches 91.20% validation accuracy: lr=0.01, …"; or why there is none
  std::vector<std::string> more{};  // what settings change, how devices compare
  /// What a person types to train the best run of a search again, as a sweep of its own; "" if there is none.
  /// A search whose file has "points" has none: they would be outside of the axes.
  std::string command{};
};

Headline headline(const ReportData& data);

/// A line per status and reason: "8 runs skipped: cuda cannot be used: …". Then the runs that are still to
/// come.
std::vector<std::string> run_notes(const ReportData& data);

struct RunsTable {
  ChartTable columns;  // title, kind: "setting", "text" or "number"
  /// A row per run, and a cell per column: a text, or for numbers [number, text]; null if there is none.
  ChartTable cells;
};

/// Settings that differ, status, epochs, losses and other measures, and times, as far as any run has them.
RunsTable runs_table(const ReportData& data);

/// what, value: program, machine, devices, command line, data with their digests, and when; of each sweep by
/// its first run that tells, and what differs in other runs. The machine's host is left out: a report is sent
/// to others.
ChartTable provenance_rows(const ReportData& data);

/// sweep, text: the sweep files as expanded, indented. Without the list of runs and the provenance, which
/// are elsewhere in the report.
ChartTable sweep_files(const ReportData& data);

/// The newest sample grid, confusion matrix and misclassified samples in the events of a run, in this order,
/// as far as there are any: "title", "width" and "height" in pixels, "uri", and "text", the same as a
/// Markdown table or "". Skips files that cannot be read, and images that are not PNG.
nlohmann::ordered_json run_pictures(const std::filesystem::path& run_directory);

}  // namespace sweep
