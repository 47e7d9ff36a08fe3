#include "runmanager/report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "core/base/error.h"
#include "core/base/file.h"
#include "runmanager/inspect/run_listing.h"
#include "runmanager/records/provenance.h"
#include "runmanager/report/charts.h"
#include "runmanager/report/page.h"
#include "runmanager/report/page_parts.h"
#include "runmanager/report/run_pictures.h"
#include "runmanager/text/json_output.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// The pictures of the best run; before there is one, of the first run with pictures.
Json pictures_json(const ReportData& data) {
  Json json = {{"run", nullptr}, {"list", Json::array()}};
  for (std::size_t run = 0; run < data.runs.size(); ++run) {
    if (data.best ? run != *data.best : data.records[run].epochs.empty()) continue;
    const std::vector<RunPicture> pictures =
        run_pictures(fs::path(data.runs[run].source) / data.records[run].name);
    if (pictures.empty()) continue;
    json["run"] = run_label(data, run, true);
    for (const RunPicture& picture : pictures)
      json["list"].push_back({{"title", picture.title},
                              {"width", picture.width},
                              {"height", picture.height},
                              {"uri", png_uri(picture.png)},
                              {"text", picture.text}});
    break;
  }
  return json;
}

std::string compared_title(const ReportData& data) {
  if (!data.compared) return "";
  const std::vector<ComparedValue>& values = data.compared->values;
  return values.size() == 1 ? fmt::format("Speed: {} against {}", values[0].base, values[0].other)
                            : fmt::format("Speed by {}", data.compared->key);
}

}  // namespace

Json report_model(const ReportData& data, const std::string& date) {
  const Charts charts = charts_of(data);
  const Headline answer = headline(data);
  const RunsTable runs = runs_table(data);
  Json series = Json::array(), labels = Json::array();
  for (const CurveSeries& one : curve_series(data)) series.push_back(one.runs);
  for (std::size_t run = 0; run < data.runs.size(); ++run) labels.push_back(run_label(data, run, true));
  return {{"title", data.title},
          {"date", date},
          {"program", fmt::format("sweep {} ({})", program_version(), program_revision())},
          {"vega", has_vega()},
          {"answer", {{"best", answer.best}, {"more", answer.more}, {"command", answer.command}}},
          {"metric", data.metric().name},
          {"keys", data.keys},
          {"best", data.best ? Json(*data.best) : Json()},
          {"labels", std::move(labels)},
          {"ended",
           std::ranges::count_if(data.records, [](const RunRecord& run) { return has_ended(run.status); })},
          {"series_runs", std::move(series)},
          {"columns", runs.columns},
          {"runs", runs.cells},
          {"notes", run_notes(data)},
          {"charts", charts.charts},
          {"remarks", charts.remarks},
          {"tables", charts.tables},
          {"compared", compared_title(data)},
          {"no_effects", data.no_effects},
          {"pictures", pictures_json(data)},
          {"provenance", provenance_rows(data)},
          {"files", sweep_files(data)}};
}

std::vector<fs::path> write_chart_specs(const ReportData& data, const fs::path& folder) {
  make_directories(folder);
  const Charts charts = charts_of(data);
  std::vector<fs::path> paths;
  for (const Chart& chart : charts.charts) {
    paths.push_back(folder / (chart.id + ".vg.json"));
    write_file_atomically(paths.back(), json_text(complete_spec(chart, charts)));
  }
  return paths;
}

}  // namespace sweep
