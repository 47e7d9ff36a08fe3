// The shipped sweeps on the data that they name, unchanged except for what would take long. curves_test.cpp
// and tests/core/engine/training_test.cpp compare trainings with PyTorch's.
// Sweeps of pictures that are not here run on generated ones.

#include "tests/support/fashion_mnist.h"
#include "tests/support/generated_pictures.h"
#include "tests/support/image_files.h"
#include "tests/support/program_folder.h"

namespace sweep::testing::tools_shipped_sweeps_test {

class ShippedFolder : public ProgramFolder {
 protected:
  // Runs sweeps/NAME.json with `overrides`.
  Finished run_shipped(const std::string& name, const std::vector<std::string>& overrides) const {
    return run(joined({std::string(SWEEP_SOURCE_DIR) + "/sweeps/" + name + ".json"}, overrides));
  }
};

class ShippedSweeps : public ShippedFolder {
 protected:
  // Returns the records of the runs that were trained to their end; others may only lack a GPU, or be pruned
  // by a search.
  std::vector<json> train(const std::string& name, const std::vector<std::string>& overrides) const {
    run_shipped(name, overrides);
    std::vector<json> trained;
    for (const json& row : results(name)) {
      const json record = this->record(name + "/" + row.at("name").get<std::string>());
      if (record.at("status") == "completed") {
        trained.push_back(record);
      } else if (record.at("status") != "pruned") {
        EXPECT_EQ(record.at("status"), "skipped") << record.at("name");
        EXPECT_EQ(record.at("params").value("device", ""), "cuda") << record.at("name");
      }
    }
    return trained;
  }

  static double test_accuracy(const json& record) { return record.at("metrics").at("test_accuracy"); }
};

struct Shipped {
  std::string name;
  int samples;
  std::vector<std::string> overrides;
  std::size_t runs;        // trained to their end on the CPU
  double every, best_one;  // accuracies on the test set that are reached
};
void PrintTo(const Shipped& sweep, std::ostream* out) { *out << sweep.name; }

class ShippedSweep : public ShippedSweeps, public ::testing::WithParamInterface<Shipped> {};

TEST_P(ShippedSweep, LearnsFromFewSamples) {
  SKIP_WITHOUT_FASHION_MNIST();
  const auto& [name, samples, overrides, runs, every, best_one] = GetParam();
  std::size_t count = 0;
  double best = 0;
  for (const json& run : train(name, joined({"dataset.limit=" + std::to_string(samples)}, overrides))) {
    if (run.at("params").value("device", "cpu") != "cpu") continue;
    ++count;
    best = std::max(best, test_accuracy(run));
    EXPECT_GT(test_accuracy(run), every) << run.at("name");
  }
  EXPECT_EQ(count, runs);
  EXPECT_GT(best, best_one);
}

const Shipped kShipped[] = {
    {"fashion", 4000, {"num_workers=0"}, 8, 0.25, 0.7},
    {"cpu-vs-cuda", 4000, {"device=cuda,cpu", "batch_size=100,1000"}, 4, 0.4, 0.6},
    {"lr-batch-shuffle", 4000, {"device=cpu", "batch_size=20,100,500", "epochs=2"}, 12, 0.2, 0.7},
    {"mlp-momentum", 4000, {"device=cpu"}, 8, 0.1, 0.75},
    {"resnet", 800, {"device=cpu", "dataset.validation=1000", "batch_size=32"}, 4, 0.6, 0.6},
    {"schedules", 4000, {"device=cpu", "epochs=3"}, 6, 0.5, 0.65},
    {"search-tpe", 4000, {"device=cpu", "epochs=1", "search.trials=20"}, 20, 0, 0.7},
    {"slurm", 4000, {"device=cpu", "epochs=2", "lr=0.01", "batch_size=100"}, 2, 0.6, 0.7},
    {"search-halving",
     2000,
     {"device=cpu", R"(lr={"logspace":[0.0001,0.1,4]})", "batch_size=20,200",
      "network.layers.fc1.out_features=120"},
     2,
     0.7,
     0.7},
};

INSTANTIATE_TEST_SUITE_P(All, ShippedSweep, ::testing::ValuesIn(kShipped), [](const auto& sweep) {
  std::string name = sweep.param.name;
  std::erase(name, '-');
  return name;
});

TEST_F(ShippedSweeps, TheNetworkOfFashionGetsEightyEightPercentInTenEpochs) {
  SKIP_WITHOUT_FASHION_MNIST();
  const std::vector<json> runs =
      train("fashion", {"device=cpu", "num_workers=0", "shuffle=true", "batch_size=100", "lr=0.003",
                        "epochs=10", "dataset.validation=0"});
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_GE(test_accuracy(runs[0]), 0.88);  // 89.2 % with either of two seeds
}

TEST_F(ShippedSweeps, ParallelGivesTheSameNumbersOnAnyDevices) {
  SKIP_WITHOUT_FASHION_MNIST();
  const std::vector<json> runs = train("parallel", {"dataset.limit=3000", "epochs=2", "--threads=2"});
  ASSERT_EQ(runs.size(), 10u);
  for (const json& run : runs) {
    for (const char* key : {"loss", "accuracy", "validation_loss", "validation_accuracy"}) {
      ASSERT_TRUE(run.at("epochs").at(1).contains(key)) << key;
      EXPECT_EQ(run.at("epochs").at(1).at(key), runs.at(0).at("epochs").at(1).at(key))
          << run.at("name") << key;
    }
  }
}

// The sweeps that follow known tutorials, on generated data of the form of theirs.

class Tutorials : public ShippedFolder {
 protected:
  Finished train(const std::string& name, const std::vector<std::string>& overrides) const {
    return run_shipped(name, joined(overrides, {"device=cpu"}));
  }
};

TEST_F(Tutorials, TheMlpOnDigitsBeginsAtChanceAndLearns) {
  test::write_digits(path("digits"), "train", 0, 3000);
  test::write_digits(path("digits"), "t10k", 3000, 500);
  train("mnist-mlp",
        {"dataset.name=digits", "dataset.path=" + path("digits").string(), "dataset.validation=500"});
  for (const char* name : {"optimizer=sgd,lr=0.5", "optimizer=adam,lr=0.001"}) {
    const json run = record("mnist-mlp/" + std::string(name));
    ASSERT_EQ(run["epochs"].size(), 6u) << name;
    EXPECT_EQ(run["epochs"][0]["epoch"], 0);
    EXPECT_LT(run["epochs"][0]["validation_accuracy"].get<double>(), 0.35) << "untrained, of ten classes";
    EXPECT_GT(run["epochs"][5]["validation_accuracy"].get<double>(), 0.95) << name;
    EXPECT_GT(run["metrics"]["test_accuracy"].get<double>(), 0.95) << name;
    EXPECT_EQ(run["config"]["batch_size"], 128);
    EXPECT_EQ(run["config"]["dataset"]["split"], "random");
  }
  EXPECT_EQ(record("mnist-mlp/optimizer=sgd,lr=0.5")["epochs"][0]["validation_loss"],
            record("mnist-mlp/optimizer=adam,lr=0.001")["epochs"][0]["validation_loss"])
      << "the same untrained network on the same samples";
}

// Pictures of several sizes, a folder per class.
void write_pets(const SweepFolder& folder, unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    const bool dog = i % 2 == 1;
    const unsigned height = 56 + i % 13, width = 60 + i % 7;
    const test::Pixels picture = test::make_pixels(
        height, width, 3, [=](unsigned y, unsigned x, unsigned) { return test::pet_pixel(i, y, x); });
    folder.write(std::string(dog ? "PetImages/Dog/" : "PetImages/Cat/") + std::to_string(i) + ".jpg",
                 test::jpeg_file(picture));
  }
}

TEST_F(Tutorials, CatsAndDogsAreToldApartAndTheRunEndsWhenItNoLongerImproves) {
  write_pets(folder_, 160);
  folder_.write("PetImages/Cat/666.jpg", "");  // The real set also has damaged files.
  const std::string pets = "dataset.path=" + path("PetImages").string();
  const Finished finished = train("cats-dogs", {pets, "dataset.validation=0.2", "batch_size=16", "epochs=8",
                                                "log.batches=2", "stop.min_delta=0.05", "stop.patience=2"});
  EXPECT_THAT(finished.err, HasSubstr("1 file was skipped"));
  for (const char* name : {"loss=mse", "loss=cross_entropy"}) {
    const json run = record("cats-dogs/" + std::string(name));
    ASSERT_TRUE(run.contains("stopped")) << run["epochs"].dump();
    const int best = run["best_epoch"];
    EXPECT_EQ(run["stopped"]["epoch"], best + 2);
    EXPECT_GE(run["epochs"][static_cast<std::size_t>(best) - 1]["validation_accuracy"].get<double>(), 0.95)
        << name;
    EXPECT_TRUE(exists("runs/cats-dogs/" + std::string(name) + "/best.safetensors"));
    const Finished shown = (this->run({"show", "runs/cats-dogs/" + std::string(name)}));
    EXPECT_THAT(shown.out, ::testing::ContainsRegex("\n +" + std::to_string(best) + " .* best\n"));
    EXPECT_THAT(shown.out, HasSubstr("stopped early: Loss/validation has not improved by more than 0.05"));
  }
  // On the CPU the placement changes nothing, in particular no bit.
  train("data-placement", {pets, "batch_size=16", "epochs=3"});
  const json device = record("data-placement/dataset.placement=device,num_workers=0"),
             host = record("data-placement/dataset.placement=host,num_workers=2");
  EXPECT_EQ(device["metrics"], host["metrics"]);
  EXPECT_GE(device["metrics"]["validation_accuracy"].get<double>(), 0.9);
}

TEST_F(Tutorials, TheProductOnCifarIsLearntInColourAndShowsIt) {
  test::write_cifar10(
      [&](const std::string& name, const std::string& bytes) { folder_.write("cifar/" + name, bytes); }, 200);
  train("cifar10",
        {"dataset.path=" + path("cifar").string(), "dataset.validation=100", "batch_size=50,100,500"});
  int learnt = 0;
  const json rows = results("cifar10");
  ASSERT_EQ(rows.size(), 12u);
  for (const json& row : rows) {
    const std::string name = row.at("name");
    const json run = record("cifar10/" + name);
    EXPECT_EQ(run["status"], "completed");
    ASSERT_EQ(run["epochs"].size(), 5u);
    EXPECT_EQ(run["provenance"]["dataset"]["files"].size(), 6u);
    const double accuracy = run["metrics"]["test_accuracy"];
    // Without the colours 50 % would be the most. With the larger rate some runs see only these, or only the
    // places; batches of 500 leave 10 steps.
    if (run["config"]["lr"] == 0.001 && run["config"]["batch_size"] < 500) {
      EXPECT_GE(accuracy, 0.95) << name;
    } else {
      EXPECT_GE(accuracy, 0.2) << name << ": chance is 10 %";
    }
    learnt += accuracy > 0.95;
    const std::string png = first_picture("cifar10/" + name);
    ASSERT_GT(png.size(), 100u) << name;
    EXPECT_EQ(png[25], 2) << "the type of the grid's pixels: red, green and blue";
  }
  EXPECT_GE(learnt, 5);
}

}  // namespace sweep::testing::tools_shipped_sweeps_test
