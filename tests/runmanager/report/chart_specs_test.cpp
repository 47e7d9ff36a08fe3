#include "runmanager/report/chart_specs.h"

#include "tests/runmanager/answers/made_runs.h"
#include "tests/support/test.h"

namespace sweep::chart_specs_test {

using testing::made_run;

std::vector<std::string> ids(const ReportData& data) {
  std::vector<std::string> names;
  for (const Chart& chart : charts_of(data).charts) names.push_back(chart.id);
  return names;
}

SourceRun run_of(double lr, const std::vector<double>& losses, const std::string& device = "cpu") {
  SourceRun run = made_run({{"lr", lr}}, device, 1, losses);
  run.record.run_seconds = 5;
  return run;
}

TEST(Charts, AreThoseThatHaveSomethingToShow) {
  EXPECT_THAT(ids(report_data_of({run_of(0.1, {1}), run_of(0.2, {2})})),
              ElementsAre("curves-loss", "curves-accuracy", "coordinates", "effects", "times"));
  EXPECT_THAT(ids(report_data_of({run_of(0.1, {1})})),
              ElementsAre("curves-loss", "curves-accuracy", "times"));
  EXPECT_THAT(ids(report_data_of({})), ElementsAre());
  EXPECT_THAT(ids(report_data_of({run_of(0.1, {1}, "cuda:0"), run_of(0.1, {1}, "cpu")})),
              Contains("comparison"));
}

TEST(Charts, AreCompleteSpecificationsOfTheirOwn) {
  const ReportData data = report_data_of({run_of(0.1, {1}), run_of(0.2, {2})});
  const Charts charts = charts_of(data);
  for (const Chart& chart : charts.charts) {
    const auto spec = complete_spec(chart, charts);
    EXPECT_EQ(spec.at("$schema"), "https://vega.github.io/schema/vega/v5.json") << chart.id;
    for (const auto& [name, table] : chart.data) {
      std::size_t found = 0;
      for (const auto& one : spec.at("data")) {
        if (one.at("name") == name) found += one.at("values").size();
      }
      EXPECT_EQ(found, charts.tables.at(table).rows.size()) << chart.id << " " << name;
    }
  }
}

TEST(Charts, HaveAScaleAndAnAxisForEachSetting) {
  SourceRun one = run_of(0.1, {1}), other = run_of(0.2, {2});
  one.record.params.emplace_back("optimizer", "sgd");
  other.record.params.emplace_back("optimizer", "adam");
  const Charts charts = charts_of(report_data_of({one, other}));
  for (const Chart& chart : charts.charts) {
    if (chart.id != "coordinates") continue;
    std::vector<std::string> titles;
    for (const auto& axis : chart.spec.at("axes")) {
      if (axis.contains("title")) titles.push_back(axis.at("title"));
    }
    EXPECT_THAT(titles, ElementsAre("lr", "optimizer", "time per epoch, s", "training accuracy"));
    EXPECT_EQ(chart.spec.at("scales").size(), 2 + titles.size());
    return;
  }
  FAIL() << "there are no coordinates";
}

// The value of a signal of a chart, null if there is none.
nlohmann::ordered_json signal_of(const Chart& chart, const std::string& name) {
  nlohmann::ordered_json value;
  for (const auto& signal : chart.spec.at("signals"))
    if (signal.at("name") == name) value = signal.at("value");
  return value;
}

TEST(Charts, SayOfWhatTheComparedTimesAre) {
  const auto title_of = [](std::vector<SourceRun> runs) {
    const Charts charts = charts_of(report_data_of(std::move(runs)));
    const auto chart = std::ranges::find(charts.charts, "comparison", &Chart::kind);
    return chart == charts.charts.end() ? nullptr : signal_of(*chart, "title");
  };
  std::vector<SourceRun> runs = {run_of(0.1, {1}, "cuda:0"), run_of(0.1, {1}, "cpu")};
  EXPECT_EQ(title_of(runs), "time per epoch, s, median without the first");
  for (SourceRun& run : runs) run.record.epochs.clear();  // a program that reports nothing
  EXPECT_EQ(title_of(runs), "time of the run, s");
}

// A loss of 0.00001 is not 0.0000.
TEST(Charts, TellLossesBySignificantDigitsAndSharesInPercent) {
  const Charts charts = charts_of(report_data_of({run_of(0.1, {0.00001})}));
  EXPECT_EQ(signal_of(charts.charts[0], "numberFormat"), ".4~g");
  EXPECT_EQ(signal_of(charts.charts[1], "numberFormat"), ".2%");
}

TEST(Charts, CutWhatOneDivergingRunWouldStretch) {
  std::vector<SourceRun> runs;
  for (int i = 1; i <= 9; ++i) runs.push_back(run_of(i, {1.0, 0.9, 0.8}));
  runs.push_back(run_of(10, {1e6}));
  const Charts charts = charts_of(report_data_of(runs));
  EXPECT_DOUBLE_EQ(signal_of(charts.charts[0], "highest").get<double>(), 1.5);
  EXPECT_THAT(charts.remarks, ElementsAre("Loss: values above 1.5 are not shown."));
}

TEST(Charts, OfFewPointsCutOnlyWhatIsOutOfAllProportion) {
  const auto remarks = [](double worst) {
    return charts_of(report_data_of({run_of(0.1, {1.0, 0.9}), run_of(0.2, {worst})})).remarks;
  };
  EXPECT_THAT(remarks(99), ElementsAre());
  EXPECT_THAT(remarks(1e6), ElementsAre("Loss: values above 1.5 are not shown."));
  EXPECT_THAT(charts_of(report_data_of({run_of(0.1, {1e6, 1})})).remarks, ElementsAre()) << "which is it?";
}

}  // namespace sweep::chart_specs_test
