#include "runmanager/report/time_split.h"

#include <algorithm>
#include <utility>

#include "runmanager/terminal/table.h"

namespace sweep {

std::optional<TimeSplit> time_split(const RunRecord& run) {
  if (!run.run_seconds || run.epochs.empty()) return {};
  TimeSplit split{.setup = run.setup_seconds.value_or(0), .logging = run.logging_seconds};
  double training = 0;
  for (const EpochRecord& epoch : run.epochs) {
    training += epoch["epoch_seconds"].value_or(0);
    split.data_wait += epoch["data_wait_seconds"].value_or(0);
    split.communication += epoch["communication_seconds"].value_or(0);
  }
  split.compute = std::max(0.0, training - split.data_wait - split.communication);
  split.rest = std::max(0.0, *run.run_seconds - split.setup - training - split.logging);
  return split;
}

ChartTable times_table(const ReportData& data, std::size_t& left_out, std::size_t most) {
  struct Row {
    std::size_t run;
    TimeSplit split;
  };
  std::vector<Row> rows;
  for (std::size_t run = 0; run < data.runs.size(); ++run) {
    if (const auto split = time_split(data.records[run])) rows.push_back({run, *split});
  }
  left_out = rows.size() > most ? rows.size() - most : 0;
  if (left_out > 0) {
    const auto longer = [&](const Row& a, const Row& b) {
      return *data.records[a.run].run_seconds > *data.records[b.run].run_seconds;
    };
    std::stable_sort(rows.begin(), rows.end(), longer);
    rows.resize(most);
  }
  const bool any_communication =
      std::ranges::any_of(rows, [](const Row& row) { return row.split.communication > 0; });
  ChartTable table{{"run", "label", "total", "part", "seconds", "text", "order"}};
  for (const auto& [run, split] : rows) {
    const std::string total = human_seconds(*data.records[run].run_seconds);
    std::vector<std::pair<const char*, double>> parts = {{"computing", split.compute},
                                                         {"waiting for data", split.data_wait},
                                                         {"set-up", split.setup},
                                                         {"logging", split.logging},
                                                         {"validation and rest", split.rest}};
    if (any_communication)
      parts.insert(parts.begin() + 2, {"waiting for other devices", split.communication});
    for (std::size_t i = 0; i < parts.size(); ++i)
      table.rows.push_back({run, run_label(data, run, true), total, parts[i].first, parts[i].second,
                            human_seconds(parts[i].second), i});
  }
  return table;
}

}  // namespace sweep
