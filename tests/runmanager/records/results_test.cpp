#include "runmanager/records/results.h"

#include "runmanager/records/recorded_config.h"
#include "runmanager/records/run_files.h"
#include "runmanager/records/run_record_json.h"
#include "runmanager/text/csv.h"
#include "runmanager/text/json_output.h"
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

TEST(ResultsCsv, HasTheColumnsOfTheContractAndThenTheSweptKeys) {
  const auto rows = parse_csv(results_csv({completed_run()}, {"lr", "shuffle"}));
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
  const auto rows = parse_csv(results_csv({run}, {}));
  EXPECT_EQ(rows[1][9], "");
  EXPECT_EQ(rows[2][9], "0.625");
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

TEST(ResultsCsv, EndsWithMeanAndDeviationOverRepeats) {
  const auto rows = parse_csv(results_csv(repeated_runs(), {"lr", "repeat"}));
  ASSERT_EQ(rows.size(), 1u + 4 + 2);
  EXPECT_EQ(std::vector(rows[5].begin(), rows[5].begin() + 4),
            (std::vector<std::string>{"lr=0.1", "mean", "1", csv_number(7.0 / 3)}));
  EXPECT_EQ(rows[6][1], "std");
  EXPECT_NEAR(std::stod(rows[6][3]), 1.5275252316519468, 1e-12) << "numpy.std([1, 2, 4], ddof=1)";
  EXPECT_NEAR(std::stod(rows[5][9]), 7.0 / 24, 1e-12) << "of each run's last epoch";
  EXPECT_EQ(rows[5].back(), "") << "no repeat";
  EXPECT_EQ(rows[5][8], "") << "no run has a test loss";
  std::vector<RunRecord> runs = repeated_runs();
  runs[0].status = runs[1].status = RunStatus::kFailed;
  EXPECT_EQ(parse_csv(results_csv(runs, {"lr"})).size(), 1u + 4) << "one alone has no deviation";
}

TEST(ResultsJson, HasMeanAndDeviationOverRepeats) {
  const Json json = results_json(repeated_runs(), "s");
  ASSERT_EQ(json["repeats"].size(), 1u);
  const Json& repeats = json["repeats"][0];
  EXPECT_EQ(repeats["name"], "lr=0.1");
  EXPECT_EQ(repeats["runs"], 3);
  EXPECT_EQ(repeats["params"].dump(), R"({"lr":0.1})");
  ASSERT_EQ(repeats["mean"].size(), 1u);
  EXPECT_DOUBLE_EQ(repeats["mean"][0]["loss"].get<double>(), 7.0 / 3);
  EXPECT_EQ(repeats["std"][0]["accuracy"], 0);
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
  const auto rows = parse_csv(results_csv({completed_run(), run_on_numbers()}, {"lr"}));
  EXPECT_EQ(std::vector(rows[0].begin() + 13, rows[0].end()),
            (std::vector<std::string>{"mae", "validation_mae", "rmse", "validation_rmse", "r2",
                                      "validation_r2", "test_r2", "lr"}));
  EXPECT_EQ(std::vector(rows[1].begin() + 13, rows[1].end()),
            (std::vector<std::string>{"", "", "", "", "", "", "", "0.1"}));
  EXPECT_EQ(std::vector(rows[2].begin() + 13, rows[2].end()),
            (std::vector<std::string>{"1.5", "3", "2.5", "4", "nan", "0.25", "0.5", "0.1"}));
  EXPECT_EQ(rows[2][4], "");
  EXPECT_EQ(rows[2][5], "");
  RunRecord skipped = completed_run();
  skipped.epochs.clear();
  EXPECT_EQ(parse_csv(results_csv({skipped, run_on_numbers()}, {"lr"}))[1].size(), rows[0].size());
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
  const std::string csv = results_csv({run}, {"text"});
  EXPECT_THAT(csv, HasSubstr("\"a,\"\"b\"\"\nc\",pending,"));
  EXPECT_EQ(parse_csv(csv)[1].front(), "a,\"b\"\nc");
  EXPECT_EQ(parse_csv(csv)[1].back(), " x ");
}

TEST(ResultsCsv, LeavesMissingValuesEmptyAndKeepsARowForARunWithoutEpochs) {
  RunRecord skipped;
  skipped.name = "r";
  skipped.status = RunStatus::kSkipped;
  skipped.params = {{"device", "cuda"}};
  EXPECT_THAT(parse_csv(results_csv({skipped}, {"lr", "device"}))[1],
              ElementsAre("r", "skipped", "", "", "", "", "", "", "", "", "", "", "", "", "cuda"));
  RunRecord run = completed_run();
  run.epochs[0].set("validation_loss", std::nullopt);
  EXPECT_EQ(parse_csv(results_csv({run}, {}))[1][6], "");
}

TEST(ResultsCsv, NumbersReadBackToTheSameDouble) {
  for (const double value :
       {0.1, 1.0 / 3, 1e-300, 123456789.123456789, 5e-324, 1e22, -0.0, kInfinity, -kInfinity}) {
    RunRecord run = completed_run();
    run.epochs[0].set("loss", value);
    const std::string cell = parse_csv(results_csv({run}, {}))[1][3];
    EXPECT_EQ(std::strtod(cell.c_str(), nullptr), value) << cell;
  }
  RunRecord run = completed_run();
  run.epochs[0].set("loss", -kNan);
  EXPECT_EQ(parse_csv(results_csv({run}, {}))[1][3], "nan");
}

TEST(ResultsJson, SaysWhatARunSpentBeforeItsFirstEpochIfThatWasMeasured) {
  RunRecord run = completed_run();
  run.setup_seconds = 0.5;
  EXPECT_EQ(results_json({run}, "fashion")["runs"][0]["setup_seconds"], 0.5);
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
}

TEST(ResultsJson, StaysValidJsonWithNumbersThatJsonDoesNotHave) {
  RunRecord run = completed_run();
  run.epochs[0].set("loss", kNan);
  run.epochs[0].set("validation_loss", -kInfinity);
  const Json json = Json::parse(json_text(results_json({run}, "s")));
  EXPECT_EQ(json["runs"][0]["epochs"][0]["loss"], "NaN");
  EXPECT_EQ(json["runs"][0]["epochs"][0]["validation_loss"], "-Infinity");
}

TEST(ResultsJson, SurvivesTextThatIsNotUtf8) {
  RunRecord run = completed_run();
  run.error = "bad \xff byte";
  EXPECT_EQ(Json::parse(json_text(results_json({run}, "s")))["runs"][0]["error"], "bad \xEF\xBF\xBD byte");
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
    const RunRecord back = run_record_from_json(Json::parse(json_text(to_json(run))), "test");
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
  run.provenance = {{"version", "1"}};
  run.event_files = {{"events.out.tfevents.1", 200}};
  const std::string text = run_record_text(run);
  EXPECT_EQ(run_record_text(parse_run_record(text, "run.json")), text);
  EXPECT_NO_THROW(parse_run_record(json_text(to_json(run)), "run.json")) << "older versions wrote none";
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {  // the line break at the end may be anything
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = text;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
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

TEST(Csv, LeavesTextAsItIsAndReadsBackWhatWasWritten) {
  const std::vector<std::string> cells = {"=1+2", "+x", "-x", "@x", "'x", "-inf", "a \"b\"", "c,d", " e"};
  const std::string row = csv_row(cells);
  EXPECT_EQ(row, "=1+2,+x,-x,@x,'x,-inf,\"a \"\"b\"\"\",\"c,d\",\" e\"\n");
  EXPECT_EQ(parse_csv_text(row, "f").at(0), cells);
}

TEST(RunRecord, ThatIsMissingNamesTheFile) {
  TemporaryDirectory directory;
  EXPECT_THAT(test::message_of<DataError>([&] { read_run_record(directory / "run.json"); }),
              HasSubstr((directory / "run.json").string()));
}

TEST(RunStatusName, GoesBothWays) {
  for (const char* name : {"pending", "running", "completed", "failed", "skipped", "interrupted"}) {
    EXPECT_EQ(to_string(parse_run_status(name)), name);
  }
  EXPECT_THROW(parse_run_status("done"), DataError);
}

}  // namespace sweep::results_test
