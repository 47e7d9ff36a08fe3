// The program trains on tables that people bring, with classes and with numbers as targets, as well as
// scikit-learn does.

#include "runmanager/text/table_text.h"
#include "tests/support/program_folder.h"
#include "tests/support/reference_data.h"

namespace sweep::testing::own_tables_test {

class OwnTables : public ProgramFolder {
 protected:
  // Runs a sweep of one run: a hidden layer of 32 and `outputs` outputs. `settings`: further keys.
  Finished train(const std::string& dataset, int outputs, const std::string& settings = "",
                 int code = 0) const {
    return ProgramFolder::train(
        "s", dataset,
        R"({"type": "linear", "out_features": 32}, {"type": "relu"}, {"type": "linear", "out_features": )" +
            std::to_string(outputs) + "}",
        R"("lr": 0.005, "batch_size": 16)" + settings, code);
  }

  std::string dataset(const std::string& name, const std::string& more = "") const {
    const fs::path plain = test::table_path(name + ".csv"),
                   path = fs::exists(plain) ? plain : test::table_path(name + ".csv.gz");
    return R"({"name": ")" + name + R"(", "path": ")" + path.string() + "\"" + more + "}";
  }
};

TEST_F(OwnTables, AreLearntAsWellAsByScikitLearn) {
  const json figures = json::parse(read_file(test::table_path("figures.json")));
  for (const auto& [name, outputs] :
       {std::pair("iris", 3), {"wine", 3}, {"breast_cancer", 2}, {"digits", 10}, {"diabetes", 1}}) {
    SCOPED_TRACE(name);
    const json& figure = figures.at(name);
    const bool classes = figure.contains("accuracy");
    train(dataset(name), outputs,
          R"(, "epochs": )" + figure.at("epochs").dump() + R"(, "repeats": 3, "loss": ")" +
              (classes ? "cross_entropy" : "mse") + R"(", "name": ")" + name + "\"");
    double sum = 0;
    for (const char* repeat : {"repeat=0", "repeat=1", "repeat=2"}) {
      const json run = record(std::string(name) + "/" + repeat);
      sum += run.at("metrics").at(classes ? "test_accuracy" : "test_r2").get<double>();
    }
    EXPECT_NEAR(sum / 3, figure.at(classes ? "accuracy" : "r2").get<double>(), 0.02);
  }
  const Finished exported = run({"export", "runs/diabetes.mean"});
  EXPECT_NE(exported.out.find("R2/train,"), std::string::npos) << "the mean of the repeats";
  EXPECT_NE(exported.out.find("Std/R2/train,"), std::string::npos) << "and their deviation";
}

TEST_F(OwnTables, NumbersAreMeasuredAsNumbersEverywhere) {
  const Finished finished = train(dataset("diabetes", R"(, "validation": 0.2)"), 1,
                                  R"(, "epochs": 3, "loss": "smooth_l1", "log": {"batches": 5})");
  EXPECT_THAT(finished.out, HasSubstr("test R2"));
  EXPECT_THAT(finished.out, Not(HasSubstr("accuracy")));
  const json trained = record("s/run"), epoch = trained.at("epochs").at(2);
  EXPECT_TRUE(epoch.at("accuracy").is_null());
  EXPECT_TRUE(epoch.at("number_correct").is_null());
  for (const char* part : {"", "validation_", "test_"}) {
    const json& metrics = trained.at("metrics");
    const double mae = metrics.at(part + std::string("mae")), rmse = metrics.at(part + std::string("rmse"));
    EXPECT_GT(mae, 0);
    EXPECT_GT(rmse, mae) << "unless all errors are equal";
    EXPECT_LT(metrics.at(part + std::string("r2")).get<double>(), 1);
    EXPECT_FALSE(metrics.contains(part + std::string("accuracy")));
  }
  // R² from its definition: 1 − RMSE² / variance of the test rows.
  double sum = 0, squares = 0, count = 0;
  for (const auto& row : parse_csv_text(read_file(test::table_path("diabetes.csv")), "diabetes")) {
    if (row.back() != "test") continue;
    const double value = std::stod(row[row.size() - 2]);
    sum += value;
    squares += value * value;
    ++count;
  }
  const double variance = squares / count - sum / count * sum / count;
  const double rmse = trained.at("metrics").at("test_rmse");
  EXPECT_NEAR(trained.at("metrics").at("test_r2").get<double>(), 1 - rmse * rmse / variance, 1e-5);

  const auto rows = parse_csv_text(content("runs/s/results.csv"), "results.csv");
  const auto cell = [&](const char* name) {
    const auto at = std::find(rows[0].begin(), rows[0].end(), name) - rows[0].begin();
    return rows.at(3).at(static_cast<std::size_t>(at));
  };
  EXPECT_EQ(std::stod(cell("validation_r2")), epoch.at("validation_r2").get<double>());
  EXPECT_EQ(cell("accuracy"), "");
  run({"fsck", "runs/s"});
  const Finished exported = run({"export", "runs"});
  for (const char* tag : {"MAE/train", "RMSE/validation", "R2/train", "Loss/batch"})
    EXPECT_THAT(exported.out, HasSubstr(tag));
  for (const char* tag : {"Accuracy", "Number Correct", "pr_curve"})
    EXPECT_THAT(exported.out, Not(HasSubstr(tag)));
  run({"verify", "runs/s"});
}

TEST_F(OwnTables, OneOutputTellsTwoClassesApart) {
  train(dataset("breast_cancer"), 1, R"(, "epochs": 20, "loss": "bce_with_logits")");
  EXPECT_GT(record("s/run").at("metrics").at("test_accuracy"), 0.9);
  std::string events;
  for (const auto& file : fs::recursive_directory_iterator(path("runs"))) {
    if (file.path().filename().string().starts_with("events.out")) events += read_file(file.path());
  }
  for (const char* tag : {"pr_curve/benign", "pr_curve/malignant", "predictions/confusion_counts"})
    EXPECT_NE(events.find(tag), std::string::npos) << tag;
  // The row of the confusion matrix, after that of the data: 53 rows of the test set are malignant.
  const std::size_t at = events.rfind("\n| malignant | ");
  ASSERT_NE(at, std::string::npos);
  int benign = 0, malignant = 0;
  ASSERT_EQ(std::sscanf(events.substr(at, 40).c_str(), "\n| malignant | %d | %d |", &benign, &malignant), 2);
  EXPECT_EQ(benign + malignant, 53);
  EXPECT_GT(malignant, 40);
}

TEST_F(OwnTables, LogValidationBatchesBesideTrainingBatchesAndTrainTheSame) {
  const std::string data = dataset("iris", R"(, "validation": 40, "split": "random")");
  const auto weights = [&](const std::string& log, const std::string& name) {
    train(data, 3, R"(, "epochs": 3, "log": )" + log + R"(, "name": ")" + name + "\"");
    std::vector<std::string> losses;
    const json run = record(name + "/run");
    for (const json& epoch : run.at("epochs"))
      losses.push_back(epoch.at("loss").dump() + " " + epoch.at("validation_loss").dump());
    return losses;
  };
  EXPECT_EQ(weights(R"({"batches": 2, "validation_batches": 3})", "with"), weights("{}", "without"));
  const auto points = [&](const std::string& name) {
    std::vector<std::string> found;
    for (const auto& row : parse_csv_text(run({"export", "runs/" + name}).out, name)) {
      if (row.at(1) == "Loss/validation_batch" || row.at(1) == "Accuracy/validation_batch")
        found.push_back(row.at(1) + " " + row.at(2) + " " + row.at(4));
    }
    return found;
  };
  // 72 rows are 5 batches: steps 0, 2, … 14 of 15 are logged.
  const std::vector<std::string> logged = points("with");
  EXPECT_EQ(logged.size(), 16u);
  EXPECT_EQ(points("without").size(), 0u);
  weights(R"({"batches": 2, "validation_batches": 3})", "again");
  EXPECT_EQ(points("again"), logged) << "the same places";
}

TEST_F(OwnTables, MissingValuesAndCategories) {
  std::string table = "size,colour,code,weight,label\n";
  for (int i = 0; i < 60; ++i) {
    table += (i % 7 == 0 ? "NA" : std::to_string(i % 5)) + (i % 2 == 0 ? ",red," : ",blue,") +
             std::to_string(i % 3) + "," + std::to_string(i) + (i % 2 == 0 ? ",a\n" : ",b\n");
  }
  folder_.write("t.csv", table);
  EXPECT_THAT(train(R"({"name": "t", "path": "t.csv"})", 2, "", 2).err,
              HasSubstr("t.csv: line 2, column \"size\": the value is missing"));
  train(R"({"name": "t", "path": "t.csv", "missing": "mean", "categorical": "code", "ignore": ["weight"],
                      "test": 0.2})",
        2, R"(, "epochs": 20)");
  const json run = record("s/run"), data = run.at("provenance").at("dataset");
  EXPECT_EQ(data.at("features"), json({"size", "colour=blue", "colour=red", "code=0", "code=1", "code=2"}));
  EXPECT_EQ(data.at("normalize").at("mean")[1], 0) << "0 and 1 stay";
  EXPECT_EQ(data.at("normalize").at("std")[1], 1);
  EXPECT_EQ(run.at("metrics").at("test_accuracy"), 1.0);
  EXPECT_EQ(run.at("config").at("dataset").at("missing"), "mean");
  fs::remove_all(path("runs"));
  train(R"({"name": "t", "path": "t.csv", "missing": "mean", "categories": "ordinal", "normalize": "none"})",
        2);
  const json ordinal = record("s/run").at("provenance").at("dataset");
  EXPECT_EQ(ordinal.at("features"), json({"size", "colour", "code", "weight"}));
  EXPECT_FALSE(ordinal.contains("normalize"));
}

// Rows of bad_targets.json: a table with further keys of the data set, the outputs of the network, further
// settings, and a part of the message.
TEST_F(OwnTables, ALossOrNetworkThatDoesNotFitTheTargetsIsRefusedWithOneLine) {
  for (const json& row : test::reference_json("bad_targets.json")) {
    const Finished finished = train(dataset(row.at("table"), row.value("dataset", "")), row.at("outputs"),
                                    row.value("settings", ""), 2);
    EXPECT_THAT(finished.err, HasSubstr(row.at("message").get<std::string>()));
    EXPECT_EQ(std::count(finished.err.begin(), finished.err.end(), '\n'), 1) << finished.err;
    EXPECT_FALSE(exists("runs"));
  }
}

TEST_F(OwnTables, ALossThatIsNotFiniteOnTheTestSetIsDivergence) {
  std::string table = "x,target,split\n";
  for (int i = 0; i < 40; ++i) table += std::to_string(i % 4) + "," + std::to_string(i % 4) + ",train\n";
  folder_.write("t.csv", table + "3e38,1,test\n-3e38,1,test\n");
  train(R"({"name": "t", "path": "t.csv", "normalize": "none"})", 1, R"(, "loss": "mse")", 1);
  EXPECT_THAT(record("s/run").at("error").get<std::string>(),
              HasSubstr("diverged at epoch 1: the test loss is inf"));
}

}  // namespace sweep::testing::own_tables_test
