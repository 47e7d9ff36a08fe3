#include "runmanager/records/results.h"

#include <fmt/format.h>

#include "runmanager/records/run_record_json.h"
#include "tests/support/run_world.h"

namespace sweep::result_columns_test {

RunRecord trained(std::optional<double> communication_seconds) {
  RunRecord run;
  run.name = "run";
  run.status = RunStatus::kCompleted;
  run.params = {{"lr", 0.1}};
  run.epochs = {{1, {{"loss", 1}, {"communication_seconds", communication_seconds}}}};
  return run;
}

using Rows = std::vector<std::vector<std::string>>;

// The cells of the column with this title, without it.
std::vector<std::string> column(const Rows& rows, std::string_view title) {
  const auto at = static_cast<std::size_t>(std::ranges::find(rows[0], title) - rows[0].begin());
  std::vector<std::string> cells;
  for (std::size_t i = 1; i < rows.size(); ++i) cells.push_back(rows[i].at(at));
  return cells;
}

TEST(ResultColumns, HaveTheTimeThatDevicesWaitedForEachOtherWhereTheyDid) {
  const std::vector<RunRecord> runs = {trained(0.25), trained({})};
  const auto rows = parse_csv(results_csv(runs, {"lr"}));
  EXPECT_THAT(std::vector(rows[0].begin() + 12, rows[0].end()),
              ElementsAre("images_per_second", "communication_seconds", "lr"));
  EXPECT_THAT(column(rows, "communication_seconds"), ElementsAre("0.25", ""));
  const auto of_one = parse_csv(results_csv({trained({})}, {"lr"}));
  EXPECT_THAT(std::vector(of_one[0].begin() + 12, of_one[0].end()), ElementsAre("images_per_second", "lr"));
  const auto epoch_of = [json = results_json(runs, "s")](int run) {
    return json["runs"][static_cast<std::size_t>(run)]["epochs"][0];
  };
  EXPECT_EQ(epoch_of(0)["communication_seconds"], 0.25);
  EXPECT_FALSE(epoch_of(1).contains("communication_seconds"));
  EXPECT_EQ(run_record_from_json(to_json(runs[0]), "here").epochs[0]["communication_seconds"], 0.25);
}

TEST(ResultColumns, HaveAPersonsOwnMetricsInTheirEpochsAndInTheMeans) {
  std::vector<RunRecord> runs = {trained({}), trained({})};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    runs[i].name = fmt::format("run,repeat={}", i);
    runs[i].params.emplace_back("repeat", static_cast<std::int64_t>(i));
    runs[i].epochs[0].set("score", 3.0 + 2.0 * static_cast<double>(i));
    runs[i].epochs.push_back({2, {{"loss", 1}, {"score", 4.0}}});
  }
  const auto rows = parse_csv(results_csv(runs, {"lr", "repeat"}));
  EXPECT_THAT(column(rows, "score"), ElementsAre("3", "4", "5", "4", "4", "1.4142135623730951", "4", "0"));
  const auto means = results_json(runs, "s")["repeats"][0];
  EXPECT_EQ(means["mean"][0]["score"], 4);
  EXPECT_EQ(means["std"][1]["score"], 0);
}

TEST(ResultColumns, HaveOneNameEach) {
  RunRecord run = trained({});
  run.jobs = 2;
  run.epochs[0].set("slope", 3);
  std::vector<std::string> keys = {"loss", "run", "status", "epoch", "jobs", "slope", "lr", "param.lr"};
  for (const std::string& key : keys) run.params.emplace_back(key, "of " + key);
  const auto rows = parse_csv(results_csv({run}, keys));
  EXPECT_EQ(std::set<std::string>(rows[0].begin(), rows[0].end()).size(), rows[0].size());
  const auto cell = [&rows](std::string_view title) { return column(rows, title).at(0); };
  EXPECT_EQ(cell("loss") + cell("run") + cell("jobs") + cell("slope"), "1run23") << "as without parameters";
  for (const char* key : {"loss", "run", "status", "epoch", "jobs", "slope", "param.lr"})
    EXPECT_EQ(cell(std::string("param.") + key), std::string("of ") + key);
}

TEST(ResultColumns, HaveWhatIsNoNumberAsItIsAlsoOfAPersonsOwnMetrics) {
  RunRecord run = trained({});
  run.jobs = 2;
  for (const char* key : {"number_correct", "score"}) run.epochs[0].set(key, std::nan(""));
  run.epochs[0].set("bleu", -INFINITY);
  run.epochs[0].set("jobs", 3);
  const auto rows = parse_csv(results_csv({run}, {"lr"}));
  EXPECT_EQ(std::ranges::count(rows[0], "jobs"), 1) << "that of runs that share the machine";
  EXPECT_THAT(column(rows, "number_correct"), ElementsAre("nan"));
  const RunRecord read = run_record_from_json(to_json(run), "here");
  for (const char* key : {"number_correct", "score"})
    EXPECT_TRUE(std::isnan(read.epochs[0][key].value())) << key;
  EXPECT_EQ(read.epochs[0]["bleu"], -INFINITY);
}

}  // namespace sweep::result_columns_test
