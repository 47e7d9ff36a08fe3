#include "runmanager/records/results.h"

#include "runmanager/records/recorded_config.h"
#include "runmanager/records/run_record_json.h"
#include "runmanager/text/json_output.h"
#include "runmanager/text/table_text.h"
#include "tests/support/run_world.h"

namespace sweep::results_test {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

RunRecord completed_run() {
  RunRecord run;
  run.name = "lr=0.1,shuffle=true";
  run.status = RunStatus::kCompleted;
  run.params = {{"lr", 0.1}, {"shuffle", true}, {"batch_size", std::int64_t{100}}, {"optimizer", "adam"}};
  run.device = "cpu";
  run.epochs = {{1,
                 {{"loss", 0.1},
                  {"accuracy", 0.5},
                  {"number_correct", 25},
                  {"validation_loss", 1.0 / 3},
                  {"validation_accuracy", 0.75},
                  {"validation_number_correct", 9},
                  {"epoch_seconds", 1.5},
                  {"run_seconds", 2},
                  {"images_per_second", 33.25},
                  {"data_wait_seconds", 0.125}}}};
  run.run_seconds = 2.5;
  run.logging_seconds = 0.25;
  run.metrics = {{"test_accuracy", 0.625}};
  run.config = {{"lr", 0.1}, {"epochs", 1}};
  run.provenance = {{"version", "1"}};
  return run;
}

using Rows = std::vector<std::vector<std::string>>;

Rows csv_of(const std::vector<RunRecord>& runs, const std::vector<std::string>& keys = {}) {
  return parse_csv(results_csv(runs, keys));
}

// The cells of the column with this title, without it.
std::vector<std::string> column(const Rows& rows, std::string_view title) {
  const auto at = static_cast<std::size_t>(std::ranges::find(rows[0], title) - rows[0].begin());
  std::vector<std::string> cells;
  for (std::size_t i = 1; i < rows.size(); ++i) cells.push_back(rows[i].at(at));
  return cells;
}

RunRecord read_back(const RunRecord& run) {
  return run_record_from_json(Json::parse(json_text(to_json(run))), "here");
}

TEST(ResultsCsv, HasTheColumnsOfTheContractAndThenTheSweptKeys) {
  const Rows rows = csv_of({completed_run()}, {"lr", "shuffle"});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_THAT(rows[0], ElementsAre("run", "status", "epoch", "loss", "accuracy", "number_correct",
                                   "validation_loss", "validation_accuracy", "test_loss", "test_accuracy",
                                   "epoch_seconds", "run_seconds", "images_per_second", "lr", "shuffle"));
  EXPECT_THAT(rows[1],
              ElementsAre("lr=0.1,shuffle=true", "completed", "1", "0.1", "0.5", "25", "0.3333333333333333",
                          "0.75", "", "0.625", "1.5", "2", "33.25", "0.1", "true"));
}

TEST(ResultsCsv, HasTheMetricsOfTheTestAtTheLastEpoch) {
  RunRecord run = completed_run();
  run.epochs.push_back(run.epochs[0]);
  run.epochs[1].epoch = 2;
  EXPECT_THAT(column(csv_of({run}), "test_accuracy"), ElementsAre("", "0.625"));
  const Json epochs = results_json({run}, "s")["runs"][0]["epochs"];
  EXPECT_EQ(epochs[0]["test_accuracy"], nullptr);
  EXPECT_EQ(epochs[1]["test_accuracy"], 0.625);
  EXPECT_FALSE(to_json(run)["epochs"][1].contains("test_accuracy")) << "run.json has it among the metrics";
}

// Three repeats of a combination with losses of 1, 2 and 4 at the end, the last one an epoch longer.
std::vector<RunRecord> repeated_runs() {
  std::vector<RunRecord> runs;
  for (const double loss : {1.0, 2.0, 4.0}) {
    RunRecord run = completed_run();
    run.params = {{"lr", 0.1}, {"repeat", static_cast<std::int64_t>(runs.size())}};
    run.epochs[0].set("loss", loss);
    run.metrics["test_accuracy"] = loss / 8;
    runs.push_back(run);
  }
  runs[2].epochs.push_back(runs[2].epochs[0]);
  runs[2].epochs[1].epoch = 2;
  return runs;
}

TEST(Results, EndWithMeanAndDeviationOverRepeats) {
  std::vector<RunRecord> runs = repeated_runs();
  const Rows rows = csv_of(runs, {"lr", "repeat"});
  ASSERT_EQ(rows.size(), 1u + 4 + 2);
  EXPECT_EQ(std::vector(rows[5].begin(), rows[5].begin() + 4),
            (std::vector<std::string>{"lr=0.1", "mean", "1", csv_number(7.0 / 3)}));
  EXPECT_EQ(rows[6][1], "std");
  EXPECT_NEAR(std::stod(rows[6][3]), 1.5275252316519468, 1e-12) << "numpy.std([1, 2, 4], ddof=1)";
  EXPECT_NEAR(std::stod(rows[5][9]), 7.0 / 24, 1e-12) << "of each run's last epoch";
  EXPECT_EQ(rows[5].back(), "") << "no repeat";
  EXPECT_EQ(rows[5][8], "") << "no run has a test loss";
  const Json json = results_json(runs, "s");
  ASSERT_EQ(json["repeats"].size(), 1u);
  const Json& repeats = json["repeats"][0];
  EXPECT_EQ(repeats["name"], "lr=0.1");
  EXPECT_EQ(repeats["runs"], 3);
  EXPECT_EQ(repeats["params"].dump(), R"({"lr":0.1})");
  ASSERT_EQ(repeats["mean"].size(), 1u);
  EXPECT_DOUBLE_EQ(repeats["mean"][0]["loss"].get<double>(), 7.0 / 3);
  EXPECT_EQ(repeats["std"][0]["accuracy"], 0);
  runs[0].status = runs[1].status = RunStatus::kFailed;
  EXPECT_EQ(csv_of(runs, {"lr"}).size(), 1u + 4) << "one alone has no deviation";
}

RunRecord run_on_numbers() {
  RunRecord run = completed_run();
  EpochRecord& epoch = run.epochs[0];
  for (const char* key : {"accuracy", "number_correct", "validation_accuracy", "validation_number_correct"})
    epoch.set(key, std::nullopt);
  for (const auto& [key, value] : {std::pair("mae", 1.5), {"rmse", 2.5}, {"r2", kNan}}) epoch.set(key, value);
  for (const auto& [key, value] :
       {std::pair("validation_mae", 3.0), {"validation_rmse", 4}, {"validation_r2", 0.25}})
    epoch.set(key, value);
  run.metrics = {{"test_r2", 0.5}};
  return run;
}

TEST(ResultsCsv, HasColumnsForMeasuresWhereARunHasThem) {
  const Rows rows = csv_of({completed_run(), run_on_numbers()}, {"lr"});
  const auto after_the_common = [](const auto& row) { return std::vector(row.begin() + 13, row.end()); };
  EXPECT_THAT(after_the_common(rows[0]), ElementsAre("mae", "validation_mae", "rmse", "validation_rmse", "r2",
                                                     "validation_r2", "test_r2", "lr"));
  EXPECT_THAT(after_the_common(rows[1]), ElementsAre("", "", "", "", "", "", "", "0.1"));
  EXPECT_THAT(after_the_common(rows[2]), ElementsAre("1.5", "3", "2.5", "4", "nan", "0.25", "0.5", "0.1"));
  EXPECT_EQ(rows[2][4] + rows[2][5], "");
  RunRecord skipped = completed_run();
  skipped.epochs.clear();
  EXPECT_EQ(csv_of({skipped, run_on_numbers()}, {"lr"})[1].size(), rows[0].size());
}

TEST(Results, HaveTheTimeThatDevicesWaitedForEachOtherWhereTheyDid) {
  std::vector<RunRecord> runs = {completed_run(), completed_run()};
  EXPECT_EQ(csv_of(runs, {"lr"})[0].size(), 14u);
  runs[0].epochs[0].set("communication_seconds", 0.25);
  const Rows rows = csv_of(runs, {"lr"});
  EXPECT_THAT(std::vector(rows[0].begin() + 12, rows[0].end()),
              ElementsAre("images_per_second", "communication_seconds", "lr"));
  EXPECT_THAT(column(rows, "communication_seconds"), ElementsAre("0.25", ""));
  const Json json = results_json(runs, "s")["runs"];
  EXPECT_EQ(json[0]["epochs"][0]["communication_seconds"], 0.25);
  EXPECT_FALSE(json[1]["epochs"][0].contains("communication_seconds"));
  EXPECT_EQ(read_back(runs[0]).epochs[0]["communication_seconds"], 0.25);
}

TEST(Results, HaveAPersonsOwnMetricsInTheirEpochsAndInTheMeans) {
  std::vector<RunRecord> runs = {completed_run(), completed_run()};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    runs[i].params = {{"lr", 0.1}, {"repeat", static_cast<std::int64_t>(i)}};
    runs[i].epochs[0].set("score", 3.0 + 2.0 * static_cast<double>(i));
    runs[i].epochs.push_back({2, {{"loss", 1}, {"score", 4.0}}});
  }
  EXPECT_THAT(column(csv_of(runs, {"lr", "repeat"}), "score"),
              ElementsAre("3", "4", "5", "4", "4", "1.4142135623730951", "4", "0"));
  const Json means = results_json(runs, "s")["repeats"][0];
  EXPECT_EQ(means["mean"][0]["score"], 4);
  EXPECT_EQ(means["std"][1]["score"], 0);
}

TEST(ResultsCsv, HasColumnsOfOneNameEach) {
  RunRecord run = completed_run();
  run.jobs = 2;
  run.epochs[0].set("slope", 3);
  run.params.clear();
  std::vector<std::string> keys = {"loss", "run", "status", "epoch", "jobs", "slope", "lr", "param.lr"};
  for (const std::string& key : keys) run.params.emplace_back(key, "of " + key);
  const Rows rows = csv_of({run}, keys);
  EXPECT_EQ(std::set<std::string>(rows[0].begin(), rows[0].end()).size(), rows[0].size());
  const auto cell = [&rows](std::string_view title) { return column(rows, title).at(0); };
  EXPECT_EQ(cell("loss") + cell("status") + cell("jobs") + cell("slope"), "0.1completed23")
      << "as without parameters";
  for (const char* key : {"loss", "run", "status", "epoch", "jobs", "slope", "param.lr"})
    EXPECT_EQ(cell(std::string("param.") + key), std::string("of ") + key);
}

TEST(Results, HaveWhatIsNoNumberAsItIsAlsoOfAPersonsOwnMetrics) {
  RunRecord run = completed_run();
  run.jobs = 2;
  for (const char* key : {"number_correct", "score"}) run.epochs[0].set(key, std::nan(""));
  run.epochs[0].set("bleu", -INFINITY);
  run.epochs[0].set("jobs", 3);
  const Rows rows = csv_of({run}, {"lr"});
  EXPECT_EQ(std::ranges::count(rows[0], "jobs"), 1) << "that of runs that share the machine";
  EXPECT_THAT(column(rows, "number_correct"), ElementsAre("nan"));
  const RunRecord read = read_back(run);
  for (const char* key : {"number_correct", "score"})
    EXPECT_TRUE(std::isnan(read.epochs[0][key].value())) << key;
  EXPECT_EQ(read.epochs[0]["bleu"], -INFINITY);
}

TEST(RunRecord, KeepsTheNetworkBeforeTrainingApart) {
  RunRecord run = completed_run();
  run.untrained =
      EpochRecord{0, {{"validation_loss", 2.25}, {"validation_accuracy", 0.125}, {"run_seconds", 1}}};
  run.epochs.push_back({2, {{"loss", 1}}});
  Json json = to_json(run);
  const RunRecord back = run_record_from_json(json, "here");
  EXPECT_EQ(back.untrained.value()["validation_loss"], 2.25);
  ASSERT_EQ(back.epochs.size(), 2u);
  EXPECT_EQ(back.epochs[0].epoch, 1);
  EXPECT_EQ(to_json(back), json);
  json["epochs"].erase(0);
  EXPECT_FALSE(run_record_from_json(json, "here").untrained);
  json["epochs"][0]["loss"] = nullptr;
  EXPECT_EQ(run_record_from_json(json, "here").epochs.at(0)["loss"], std::nullopt) << "of a person's program";
  json["epochs"][0].erase("loss");
  EXPECT_THROW(run_record_from_json(json, "here"), DataError);
}

TEST(RunRecord, IsRefusedWhereACountIsNoInteger) {
  RunRecord run = completed_run();
  run.best_epoch = 1;
  run.event_files = {{"events", 7}};
  run.config[kLineageKey] = to_json(Lineage{{.run = "trial=1", .until = 2, .params = run.params}});
  const Json good = to_json(run);
  EXPECT_EQ(run_record_from_json(good, "here").best_epoch, 1);
  for (const char* path : {"/best_epoch", "/jobs", "/events/events", "/epochs/0/epoch",
                           "/epochs/0/number_correct", "/config/lineage/0/epoch"}) {
    for (const Json& bad : {Json(1e72), Json(1.5), Json("1")}) {
      Json json = good;
      json[Json::json_pointer(path)] = bad;
      EXPECT_THROW(run_record_from_json(json, "here"), DataError) << path << " " << bad;
    }
  }
  run.config[kLineageKey] = "v2";
  EXPECT_EQ(run_record_from_json(to_json(run), "here").config, run.config) << "of a person's own loop";
}

TEST(RunRecord, IsRefusedIfItsDirectoryIsNoTextAndMayHaveNone) {
  RunRecord run = completed_run();
  run.provenance = {{"directory", 3}};
  EXPECT_THROW(run_record_from_json(to_json(run), "here"), DataError);
  run.provenance = nullptr;
  RunConfig config;
  config.init = "weights";
  resolve_paths(config, run_record_from_json(to_json(run), "here"));
  EXPECT_EQ(config.init, "weights");
}

TEST(ResultsCsv, QuotesWhatRfc4180Quotes) {
  RunRecord run;
  run.name = "a,\"b\"\nc";
  run.params = {{"text", " x "}};
  EXPECT_THAT(results_csv({run}, {"text"}), HasSubstr("\"a,\"\"b\"\"\nc\",pending,"));
  const Rows rows = csv_of({run}, {"text"});
  EXPECT_EQ(rows[1].front(), "a,\"b\"\nc");
  EXPECT_EQ(rows[1].back(), " x ");
}

TEST(ResultsCsv, LeavesMissingValuesEmptyAndKeepsARowForARunWithoutEpochs) {
  RunRecord skipped;
  skipped.name = "r";
  skipped.status = RunStatus::kSkipped;
  skipped.params = {{"device", "cuda"}};
  EXPECT_THAT(csv_of({skipped}, {"lr", "device"})[1],
              ElementsAre("r", "skipped", "", "", "", "", "", "", "", "", "", "", "", "", "cuda"));
  RunRecord run = completed_run();
  run.epochs[0].set("validation_loss", std::nullopt);
  EXPECT_THAT(column(csv_of({run}), "validation_loss"), ElementsAre(""));
}

TEST(ResultsCsv, NumbersReadBackToTheSameDouble) {
  for (const double value :
       {0.1, 1.0 / 3, 1e-300, 123456789.123456789, 5e-324, 1e22, -0.0, kInfinity, -kInfinity}) {
    RunRecord run = completed_run();
    run.epochs[0].set("loss", value);
    const std::string cell = column(csv_of({run}), "loss").at(0);
    EXPECT_EQ(std::strtod(cell.c_str(), nullptr), value) << cell;
  }
  RunRecord run = completed_run();
  run.epochs[0].set("loss", -kNan);
  EXPECT_THAT(column(csv_of({run}), "loss"), ElementsAre("nan"));
}

TEST(ResultsJson, HasExactlyTheKeysOfTheContract) {
  const Json json = results_json({completed_run()}, "fashion");
  const auto keys = [](const Json& object) {
    std::vector<std::string> names;
    for (const auto& [key, value] : object.items()) names.push_back(key);
    return names;
  };
  EXPECT_THAT(keys(json), ElementsAre("sweep", "runs"));
  EXPECT_EQ(json["sweep"], "fashion");
  const Json& run = json["runs"][0];
  EXPECT_THAT(keys(run), ElementsAre("name", "status", "params", "epochs", "run_seconds", "error"));
  EXPECT_THAT(
      keys(run["epochs"][0]),
      ElementsAre("epoch", "loss", "accuracy", "number_correct", "validation_loss", "validation_accuracy",
                  "test_loss", "test_accuracy", "epoch_seconds", "run_seconds", "images_per_second"));
  EXPECT_THAT(keys(run["params"]), ElementsAre("lr", "shuffle", "batch_size", "optimizer"));
  EXPECT_TRUE(run["params"]["shuffle"].is_boolean());
  EXPECT_TRUE(run["params"]["batch_size"].is_number_integer());
  EXPECT_TRUE(run["error"].is_null());
  RunRecord with_setup = completed_run();
  with_setup.setup_seconds = 0.5;
  EXPECT_EQ(results_json({with_setup}, "fashion")["runs"][0]["setup_seconds"], 0.5);
}

TEST(ResultsJson, StaysValidJsonWithNumbersThatJsonDoesNotHaveAndTextThatIsNotUtf8) {
  RunRecord run = completed_run();
  run.epochs[0].set("loss", kNan);
  run.epochs[0].set("validation_loss", -kInfinity);
  run.error = "bad \xff byte";
  const Json json = Json::parse(json_text(results_json({run}, "s")))["runs"][0];
  EXPECT_EQ(json["epochs"][0]["loss"], "NaN");
  EXPECT_EQ(json["epochs"][0]["validation_loss"], "-Infinity");
  EXPECT_EQ(json["error"], "bad \xEF\xBF\xBD byte");
}

TEST(RunRecord, ComesBackFromItsJsonAsItWas) {
  RunRecord whole = completed_run(), own = completed_run();
  whole.error = "why";
  whole.setup_seconds = 0.75;
  whole.placement = "host";
  whole.epochs.push_back({2, {{"loss", kInfinity}, {"device_seconds", 0.5}}});
  own.metrics = {{"mae", 0.5}, {"mae2", 0.25}, {"test_accuracy", 0.625}};  // a person's own
  own.epochs[0].set("perplexity", 7);
  for (const RunRecord& run : {whole, own, run_on_numbers()}) {
    const RunRecord back = read_back(run);
    EXPECT_EQ(to_json(back).dump(), to_json(run).dump());
    EXPECT_EQ(back.params, run.params);  // with their types
    EXPECT_EQ(back.setup_seconds, run.setup_seconds);
    EXPECT_EQ(back.placement, run.placement);
    EXPECT_EQ(back.metrics, run.metrics) << "without the last epoch's";
    ASSERT_EQ(back.epochs.size(), run.epochs.size());
    for (std::size_t i = 0; i < run.epochs.size(); ++i) {
      EXPECT_EQ(back.epochs[i].values.size(), run.epochs[i].values.size());
      for (const auto& [metric, value] : run.epochs[i].values)
        EXPECT_THAT(back.epochs[i][*metric], Optional(::testing::NanSensitiveDoubleEq(value))) << metric->key;
    }
  }
  EXPECT_EQ(to_json(run_on_numbers()).at("metrics").at("validation_rmse"), 4);
}

TEST(RunRecord, WithAnyBitFlippedHasAWrongChecksum) {
  RunRecord run = completed_run();
  run.event_files = {{"events.out.tfevents.1", 200}};
  const std::string text = run_record_text(run);
  EXPECT_EQ(run_record_text(parse_run_record(text, "run.json")), text);
  EXPECT_NO_THROW(parse_run_record(json_text(to_json(run)), "run.json")) << "older versions wrote none";
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {  // the line break at the end may be anything
    for (int bit = 0; bit < 8; ++bit) {
      const std::string damaged = flipped(text, i, 1 << bit);
      EXPECT_THAT(test::message_of<DataError>([&] { parse_run_record(damaged, "there/run.json"); }),
                  HasSubstr("there/run.json"))
          << "bit " << bit << " at " << i;
    }
  }
}

TEST(RunRecord, WithAValueOfAnotherTypeIsADataErrorThatNamesTheFile) {
  const auto good = to_json(completed_run());
  std::set<std::string> accepted;
  for (const auto& [key, value] : good.items()) {
    for (const char* wrong : {"[[]]", "17", "\"x\"", "{\"a\": []}"}) {
      auto json = good;
      json[key] = nlohmann::ordered_json::parse(wrong);
      try {
        parse_run_record(json.dump(), "there/run.json");
        accepted.insert(key + ": " + wrong);
      } catch (const DataError& error) {
        EXPECT_THAT(error.what(), HasSubstr("there/run.json"));
      }
    }
  }
  EXPECT_EQ(accepted,  // texts, numbers and objects where they belong, and times that are not there
            (std::set<std::string>{"name: \"x\"", "device: \"x\"", "placement: \"x\"", "error: \"x\"",
                                   "jobs: 17", "started: \"x\"", "ended: \"x\"", "config: {\"a\": []}",
                                   "provenance: {\"a\": []}", "seconds: {\"a\": []}"}));
}

TEST(RunRecord, ThatIsMissingNamesTheFile) {
  EXPECT_THAT(test::message_of<DataError>([] { read_run_record("there/run.json"); }),
              HasSubstr("there/run.json"));
}

TEST(RunStatusName, GoesBothWays) {
  for (const char* name : {"pending", "running", "completed", "failed", "skipped", "interrupted", "pruned"})
    EXPECT_EQ(to_string(parse_run_status(name)), name);
  EXPECT_THROW(parse_run_status("done"), DataError);
}

}  // namespace sweep::results_test
