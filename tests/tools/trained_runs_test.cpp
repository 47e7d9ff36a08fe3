// What a person does with a run that has been trained: predictions, evaluation, files for other programs.

#include "runmanager/text/table_text.h"
#include "tests/support/image_files.h"
#include "tests/support/program_folder.h"
#include "tests/support/reference_data.h"

namespace sweep::testing::trained_runs_test {

class TrainedRuns : public ProgramFolder {
 protected:
  void train_table(const std::string& table, int outputs,
                   const std::string& settings = "\"epochs\": 10") const {
    train(table,
          R"({"name": ")" + table + R"(", "path": ")" + test::table_path(table + ".csv").string() + "\"}",
          R"({"type": "linear", "out_features": 16}, {"type": "relu"}, {"type": "linear", "out_features": )" +
              std::to_string(outputs) + "}",
          R"("lr": 0.01, "batch_size": 16, )" + settings);
  }

  // Red poppies and blue cornflowers, 12 x 12 pixels.
  static test::Pixels flower(unsigned label, unsigned i) {
    return test::make_pixels(12, 12, 3, [=](unsigned y, unsigned x, unsigned c) {
      return (i * 31 + y * 7 + x * 13) % 60 + (c == 2 * label ? 150 : 20);
    });
  }

  void train_pictures(const std::string& settings = "\"epochs\": 6") const {
    for (unsigned i = 0; i < 40; ++i) {
      folder_.write(
          std::string("flowers/") + (i % 2 == 0 ? "poppy/" : "cornflower/") + std::to_string(i) + ".png",
          test::png_file(flower(i % 2, i)));
    }
    train("flowers",
          R"({"name": "flowers", "path": "flowers", "validation": 10, "resize": [8, 8],
              "normalize": {"mean": [0.5, 0.4, 0.3], "std": [0.2, 0.3, 0.4]}})",
          R"({"name": "conv1", "type": "conv2d", "out_channels": 4, "kernel_size": 3}, {"type": "relu"},
             {"type": "flatten"}, {"name": "out", "type": "linear", "out_features": 2})",
          R"("lr": 0.01, "batch_size": 10, )" + settings);
  }
};

TEST_F(TrainedRuns, EvaluateToWhatTheyMeasuredInTraining) {
  train_table("iris", 3);
  const json evaluated = output({"evaluate", "runs/iris"}), metrics = record("iris/run").at("metrics");
  EXPECT_EQ(evaluated.at("part"), "test");
  EXPECT_EQ(evaluated.at("loss"), metrics.at("test_loss")) << "to the last bit";
  EXPECT_EQ(evaluated.at("accuracy"), metrics.at("test_accuracy"));
  EXPECT_EQ(evaluated.at("epoch"), 10);
  // The confusion matrix from the predictions, one by one.
  const auto rows = parse_csv_text(run({"predict", "runs/iris", "--dataset", "--csv"}).out, "predictions");
  ASSERT_EQ(rows.size(), 1 + evaluated.at("samples").get<std::size_t>());
  EXPECT_EQ(rows[0], (std::vector<std::string>{"sample", "label", "class", "probability", "P(setosa)",
                                               "P(versicolor)", "P(virginica)"}));
  const json& confusion = evaluated.at("confusion");
  for (std::size_t label = 0; label < 3; ++label) {
    for (std::size_t predicted = 0; predicted < 3; ++predicted) {
      const auto count = std::count_if(rows.begin() + 1, rows.end(), [&](const auto& row) {
        return row[1] == evaluated.at("classes")[label].at("name").get<std::string>() &&
               row[2] == evaluated.at("classes")[predicted].at("name").get<std::string>();
      });
      EXPECT_EQ(confusion[label][predicted], count);
    }
  }
  for (std::size_t i = 1; i < rows.size(); ++i)
    EXPECT_NEAR(std::stod(rows[i][4]) + std::stod(rows[i][5]) + std::stod(rows[i][6]), 1, 1e-5);
  const Finished text = run({"evaluate", "runs/iris/run", "--part", "train"});
  EXPECT_THAT(text.out, HasSubstr("train set, 112 samples: loss "));
  EXPECT_THAT(text.out, HasSubstr("label \\ predicted  setosa  versicolor  virginica"));
  const auto csv = parse_csv_text(run({"evaluate", "runs/iris", "--format", "csv"}).out, "classes");
  ASSERT_EQ(csv.size(), 5u) << "one table: titles, three classes and their mean";
  EXPECT_EQ(std::stod(csv[1][3]), evaluated.at("classes")[0].at("precision"));
  EXPECT_THAT(run({"evaluate", "runs/iris", "--format", "latex"}).out,
              HasSubstr("\\end{tabular}\n\n\\begin"));
  EXPECT_THAT(run({"predict", "runs/iris", "--dataset", "--format", "markdown"}).out,
              StartsWith("| sample | label | class | probability | second | third |\n"));
  EXPECT_THAT(run({"evaluate", "runs/iris", "--part", "validation"}, 2).err,
              HasSubstr("the run's data has no validation samples"));
}

TEST_F(TrainedRuns, ThatPredictNumbersEvaluateToTheirErrors) {
  train_table("diabetes", 1, R"("epochs": 5, "loss": "mse")");
  const json evaluated = output({"evaluate", "runs/diabetes"}),
             metrics = record("diabetes/run").at("metrics");
  EXPECT_FALSE(evaluated.contains("confusion"));
  const json& target = evaluated.at("targets").at(0);
  EXPECT_EQ(target.at("name"), "target");
  EXPECT_NEAR(target.at("mae").get<double>(), metrics.at("test_mae").get<double>(), 1e-4);
  EXPECT_NEAR(target.at("rmse").get<double>(), metrics.at("test_rmse").get<double>(), 1e-4);
  EXPECT_NEAR(target.at("r2").get<double>(), metrics.at("test_r2").get<double>(), 1e-5);
  // The same row in a file and in the data set is the same number.
  const auto own =
      parse_csv_text(run({"predict", "runs/diabetes", "--dataset", "--part", "train", "--csv"}).out, "");
  const auto file = parse_csv_text(
      run({"predict", "runs/diabetes", test::table_path("diabetes.csv").string(), "--csv"}).out, "");
  EXPECT_EQ(own.at(0), (std::vector<std::string>{"sample", "target (right)", "target"}));
  EXPECT_EQ(file.at(0), (std::vector<std::string>{"sample", "target"}));
  const auto table = parse_csv_text(read_file(test::table_path("diabetes.csv")), "");
  const auto first =
      std::find_if(table.begin(), table.end(), [](const auto& row) { return row.back() == "train"; });
  EXPECT_EQ(file.at(static_cast<std::size_t>(first - table.begin())).at(1), own.at(1).at(2));
}

TEST_F(TrainedRuns, PredictPicturesAsTheyWereTrainedAlsoWithoutTheirData) {
  train_pictures();
  const json own = output({"predict", "runs/flowers", "--dataset", "--part", "train"}).at("predictions");
  fs::rename(path("flowers"), path("moved"));
  for (unsigned i = 0; i < 40; ++i)
    folder_.write("new/" + std::string(i < 10 ? "0" : "") + std::to_string(i) + ".png",
                  test::png_file(flower(i % 2, i)));
  const json fresh = output({"predict", "runs/flowers", "new"}).at("predictions");
  ASSERT_EQ(fresh.size(), 40u);
  int right = 0;
  for (unsigned i = 0; i < 40; ++i) right += fresh[i].at("class") == (i % 2 == 0 ? "poppy" : "cornflower");
  EXPECT_GE(right, 38);
  // Each training sample has the very probabilities that its picture has as a file.
  for (const json& sample : own) {
    EXPECT_TRUE(std::any_of(fresh.begin(), fresh.end(), [&](const json& other) {
      return other.at("probabilities") == sample.at("probabilities");
    })) << sample;
  }
  const Finished table = run({"predict", "runs/flowers", "new/00.png", "new/01.png"});
  EXPECT_THAT(table.out, HasSubstr("runs/flowers/run: weights of epoch 6"));
  EXPECT_THAT(table.out, HasSubstr("new/00.png  poppy"));
  EXPECT_THAT(run({"evaluate", "runs/flowers"}, 2).err, HasSubstr("flowers: no data set there"));
  run({"evaluate", "runs/flowers", "--data", "moved"});
  EXPECT_EQ(output({"predict", "runs/flowers", "--dataset", "--part", "train", "--data", "moved"})
                .at("predictions"),
            own);
  run({"predict", "runs/flowers", "new/00.png", "--data", "moved"}, 2);  // of no use there
}

TEST_F(TrainedRuns, NameTheFilesThatTheyCannotUse) {
  train_table("iris", 3, "\"epochs\": 1");
  folder_.write("new.csv", "petal_width,petal_length,sepal_width,sepal_length\n0.2,1.4,3.5,5.1\n");
  folder_.write("bad.csv", "petal_width,petal_length,sepal_width,sepal_length\n0.2,1.4,,5.1\n");
  const Finished some = run({"predict", "runs/iris", "new.csv", "bad.csv", "none.csv"}, 1);
  EXPECT_THAT(some.out, HasSubstr("new.csv:2  "));
  EXPECT_THAT(some.err, HasSubstr("skipped: bad.csv:2: column \"sepal_width\": the value is missing"));
  EXPECT_THAT(some.err, HasSubstr("skipped: none.csv: no such file"));
  EXPECT_EQ(run({"predict", "runs/iris", "bad.csv", "--csv"}, 2).out, "");
  std::string many = "petal_width,petal_length,sepal_width,sepal_length\n";
  for (int i = 0; i < 100; ++i) many += "0.2,1.4,,5.1\n";
  folder_.write("bad.csv", many);
  EXPECT_THAT(
      run({"predict", "runs/iris", "bad.csv"}, 2).err,
      AllOf(HasSubstr("bad.csv:21: "), Not(HasSubstr("bad.csv:22: ")), HasSubstr("and 80 more are skipped")));
  run({"predict", "runs/iris"}, 2);
  run({"predict", "runs/iris", "--dataset", "new.csv"}, 2);
  EXPECT_THAT(run({"predict", "runs/iris", "--part", "test", "new.csv"}, 2).err, HasSubstr("--dataset"));
  const Finished short_table = run({"predict", "runs/iris", "--dataset", "--part", "train"});
  EXPECT_THAT(short_table.out, HasSubstr("train[19]"));
  EXPECT_THAT(short_table.out, Not(HasSubstr("train[20]")));
  EXPECT_THAT(short_table.out, HasSubstr("and 92 more"));
}

TEST_F(TrainedRuns, AreFoundInASweepThatHasOneAndElseTheBestIsNamed) {
  train_table("iris", 3, R"("epochs": 8, "params": {"lr": [0.00001, 0.01]})");
  EXPECT_THAT(run({"evaluate", "runs/iris"}, 2).err,
              HasSubstr("has 2 completed runs: name one of them. The one with the highest training "
                        "accuracy is runs/iris/lr=0.01"));
  run({"evaluate", "runs/iris/lr=0.01"});
  EXPECT_THAT(run({"evaluate", "runs/iris/lr=0.01/run.json"}).out, StartsWith("runs/iris/lr=0.01: weights"));
  EXPECT_THAT(run_shell("cd runs/iris/lr=0.01; $SWEEP evaluate run.json; $SWEEP show run.json").out,
              AllOf(StartsWith(".: weights of epoch 8"), HasSubstr("lr=0.01: completed")));
  EXPECT_EQ(run({"evaluate", "runs/iris/lr=0.01", "--device", "cpu:1"}).out,
            run({"evaluate", "runs/iris/lr=0.01"}).out)
      << "as in a sweep file";
  EXPECT_THAT(run({"evaluate", "runs/other"}, 2).err,
              HasSubstr("runs/other: is not there; want the directory of a run"));
  fs::remove(path("runs/iris/lr=0.01/checkpoint.safetensors"));
  EXPECT_THAT(run({"evaluate", "runs/iris/lr=0.01"}, 2).err,
              HasSubstr("checkpoint.safetensors: is not there, so there are no weights"));
}

TEST_F(TrainedRuns, UseTheBestWeightsThatWereKept) {
  train_pictures(
      R"("epochs": 8, "checkpoint": "best", "stop": {"metric": "Loss/validation", "patience": 8})");
  const json run_record = record("flowers/run");
  const int best = run_record.at("best_epoch");
  const auto loss_of = [&](const std::vector<std::string>& more) {
    return output(joined({"evaluate", "runs/flowers", "--part", "validation"}, more));
  };
  EXPECT_EQ(loss_of({}).at("epoch"), best);
  EXPECT_EQ(loss_of({}).at("loss"),
            run_record.at("epochs")[static_cast<std::size_t>(best - 1)].at("validation_loss"));
  const json last = loss_of({"--weights", "last"});
  EXPECT_EQ(last.at("epoch"), 8);
  EXPECT_EQ(last.at("loss"), run_record.at("epochs")[7].at("validation_loss"));
}

TEST_F(TrainedRuns, SayWhenTheirDataHaveChanged) {
  folder_.write("t.csv", "x,label\n1,a\n2,b\n3,a\n4,b\n");
  train("t", R"({"name": "t", "path": "t.csv"})", R"({"type": "linear", "out_features": 2})",
        R"("epochs": 1, "batch_size": 2)");
  EXPECT_EQ(run({"evaluate", "runs/t"}).err, "");
  folder_.write("t.csv", "x,label\n1,a\n2,b\n3,a\n5,b\n");
  EXPECT_THAT(run({"evaluate", "runs/t"}).err, HasSubstr("t.csv: its files have another content than when"));
}

TEST_F(TrainedRuns, KnowTheirClassesInOtherDataByName) {
  std::string table = "x,label\n";
  for (const char* row : {"-2,cat\n", "2,dog\n"})
    for (int i = 0; i < 20; ++i) table += row;
  folder_.write("t.csv", table);
  train("t", R"({"name": "t", "path": "t.csv"})", R"({"type": "linear", "out_features": 2})",
        R"("epochs": 20, "lr": 0.5)");
  folder_.write("dogs.csv", "label,x\ndog,2\ndog,3\n");
  EXPECT_EQ(output({"evaluate", "runs/t", "--data", "dogs.csv"}).at("accuracy"), 1);
  folder_.write("bears.csv", "x,label\n-2,cat\n2,dog\n1,bear\n");
  for (const char* command : {"evaluate", "predict"}) {
    std::vector<std::string> words = {command, "runs/t", "--data", "bears.csv"};
    if (words[0] == "predict") words.push_back("--dataset");
    EXPECT_THAT(run(words, 2).err, HasSubstr("class \"bear\" was not there in training"));
  }
}

TEST_F(TrainedRuns, FindOutHowOtherDataAreWritten) {
  folder_.write("latin-1.csv", "x,label\n-2,B\xe4r\n2,dog\n");
  folder_.write("utf-8.csv", "x,label\n-2,B\xc3\xa4r\n2,dog\n");
  for (const std::string name : {"latin-1", "utf-8"}) {
    train(name, R"({"name": "t", "path": ")" + name + R"(.csv", "encoding": ")" + name + "\"}",
          R"({"type": "linear", "out_features": 2})", R"("epochs": 1)");
    for (const char* other : {"latin-1.csv", "utf-8.csv"})
      EXPECT_EQ(output({"evaluate", "runs/" + name, "--data", other}).at("samples"), 2) << name << other;
  }
}

TEST_F(TrainedRuns, OfAnEarlierVersionAreReadByTheirData) {
  train_table("iris", 3, "\"epochs\": 2");
  const std::string before = run({"predict", "runs/iris", "--dataset", "--csv"}).out;
  const fs::path file = path("runs/iris/run/run.json");
  json old = json::parse(read_file(file));
  old.erase("crc32c");
  old.at("provenance").erase("input");
  folder_.write("runs/iris/run/run.json", old.dump());
  EXPECT_EQ(run({"predict", "runs/iris", "--dataset", "--csv"}).out, before);
}

TEST_F(TrainedRuns, ListTheirParameters) {
  train_pictures("\"epochs\": 1");
  EXPECT_THAT(run({"show", "runs/flowers/run", "--parameters"}).out,
              HasSubstr("conv1.weight  [4, 3, 3, 3]  cpu          108"));
  const json parameters = output({"show", "runs/flowers/run", "--parameters"});
  EXPECT_EQ(parameters.at("elements"), 108 + 4 + 2 * 4 * 36 + 2);
  EXPECT_EQ(parameters.at("parameters").at(3),
            json({{"name", "out.bias"}, {"shape", {2}}, {"elements", 2}, {"device", "cpu"}}));
}

TEST_F(TrainedRuns, AreExportedWithTheirWeightsAlone) {
  train_pictures("\"epochs\": 1");
  run({"export-model", "runs/flowers", "-o", "model.safetensors"});
  const TensorFile model = read_safetensors(path("model.safetensors"));
  const TensorFile checkpoint = read_safetensors(path("runs/flowers/run/checkpoint.safetensors"));
  const TensorIndex trained(checkpoint);
  ASSERT_EQ(model.tensors.size(), 4u);
  for (const NamedTensor& tensor : model.tensors) {
    ASSERT_NE(trained.find(tensor.name), nullptr) << tensor.name;
    EXPECT_EQ(trained.find(tensor.name)->values, tensor.values);
  }
  const Finished onnx = run({"export-model", "runs/flowers", "-o", "model.onnx"});
  EXPECT_THAT(onnx.out, HasSubstr("input   float32 [batch, 3, 8, 8]: values 0 to 255"));
  EXPECT_THAT(onnx.out, HasSubstr("output  float32 [batch, 2]: before softmax, of cornflower, poppy"));
  EXPECT_THAT(run({"export-model", "runs/flowers", "-o", "model.pt"}, 2).err,
              HasSubstr("want .onnx or .safetensors"));
  run({"export-model", "runs/flowers", "-o", "none/model.onnx"}, 3);
}

}  // namespace sweep::testing::trained_runs_test
