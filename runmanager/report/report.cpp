#include "runmanager/report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "core/base/error.h"
#include "core/base/file.h"
#include "runmanager/records/provenance.h"
#include "runmanager/report/charts.h"
#include "runmanager/report/page.h"
#include "runmanager/text/json_output.h"
#include "tbwriter/event_files.h"
#include "tbwriter/event_reader.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// The tags of RunLog and log_predictions().
struct Tags {
  std::string_view image, text, title;
};
constexpr std::array<Tags, 3> kTags = {
    {{"images", "", "First batch"},
     {"predictions/confusion_matrix", "predictions/confusion_counts", "Confusion matrix"},
     {"predictions/misclassified", "predictions/misclassified_list", "Misclassified samples"}}};

using Pictures = std::array<Json, kTags.size()>;

void take(const tbwriter::DecodedEvent& event, Pictures& found) {
  for (const tbwriter::DecodedValue& value : event.values) {
    for (std::size_t i = 0; i < kTags.size(); ++i) {
      if (value.tag == kTags[i].text && value.text) found[i]["text"] = *value.text;
      if (value.tag != kTags[i].image || !value.image || !value.image->bytes.starts_with("\x89PNG\r\n\x1a\n"))
        continue;
      found[i] = {{"title", kTags[i].title},
                  {"width", value.image->width},
                  {"height", value.image->height},
                  {"uri", png_uri(value.image->bytes)},
                  {"text", found[i].value("text", "")}};
    }
  }
}

void read_pictures(const fs::path& path, Pictures& found) {
  tbwriter::EventReader reader(path);
  while (true) {
    if (const auto payload = reader.next()) {
      try {
        take(tbwriter::decode_event(*payload), found);
      } catch (const DataError&) {
        // No event: `fsck` tells of it.
      }
    } else if (!reader.skip_record()) {
      return;
    }
  }
}

// The pictures of the best run; before there is one, of the first run with pictures.
Json pictures_json(const ReportData& data) {
  for (std::size_t run = 0; run < data.runs.size(); ++run) {
    if (data.best ? run != *data.best : data.records[run].epochs.empty()) continue;
    Json list = run_pictures(fs::path(data.runs[run].source) / data.records[run].name);
    if (!list.empty()) return {{"run", run_label(data, run, true)}, {"list", std::move(list)}};
  }
  return {{"run", nullptr}, {"list", Json::array()}};
}

std::string compared_title(const ReportData& data) {
  if (!data.compared) return "";
  const std::vector<ComparedValue>& values = data.compared->values;
  return values.size() == 1 ? fmt::format("Speed: {} against {}", values[0].base, values[0].other)
                            : fmt::format("Speed by {}", data.compared->key);
}

}  // namespace

Json run_pictures(const fs::path& run_directory) {
  Pictures found;
  found.fill(Json::object());
  try {
    for (const std::string& file : tbwriter::list_event_files(run_directory))
      read_pictures(run_directory / file, found);
  } catch (const Error&) {
    // What was read until then is shown.
  }
  Json list = Json::array();
  for (Json& picture : found) {
    if (picture.contains("uri")) list.push_back(std::move(picture));
  }
  return list;
}

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
