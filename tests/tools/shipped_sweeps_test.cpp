// The shipped sweeps on the data that they name, unchanged except for what would take long. The expected
// results are those of PyTorch with the same network, optimizer and data, unless a comment says otherwise.
// Sweeps of pictures that are not here run on generated ones in tutorials_test.cpp.

#include "tests/support/fashion_mnist.h"
#include "tests/support/program_folder.h"
#include "tests/support/reference_data.h"

#include "tests/support/test.h"

namespace sweep::testing::tools_shipped_sweeps_test {

using nlohmann::json;

class ShippedSweeps : public ProgramFolder {
 protected:
  // Runs sweeps/NAME.json with `overrides`. Returns the records of the runs that were trained to their end;
  // others may only lack a GPU, or be pruned by a search.
  std::vector<json> train(const std::string& name, std::vector<std::string> overrides = {}) const {
    overrides.insert(overrides.begin(), std::string(SWEEP_SOURCE_DIR) + "/sweeps/" + name + ".json");
    run(overrides);
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

// The part of the test set that PyTorch gets right after `epochs` on all 60,000 samples in the order of the
// file.
double pytorchs_accuracy(const std::string& network, const json& settings, std::size_t epochs) {
  static const json runs = json::parse(read_file(test::reference_path("training_curves.json"))).at("runs");
  for (const json& run : runs) {
    const json& optimizer = settings.at("optimizer");
    if (run.at("network") == network && run.at("optimizer") == optimizer.at("name") &&
        run.at("arguments").value("momentum", 0.0) == optimizer.value("momentum", 0.0) &&
        run.at("lr") == settings.at("lr") && run.at("batch_size") == settings.at("batch_size"))
      return run.at("epochs").at(epochs - 1).at("test_number_correct").get<double>() / 10'000;
  }
  return NAN;
}

// Other weights, another order and 10,000 samples less move the accuracy of so few epochs by up to two
// points.
constexpr double kTolerance = 0.03;

TEST_F(ShippedSweeps, FashionReachesWhatPyTorchReaches) {
  SKIP_WITHOUT_FASHION_MNIST();
  const std::vector<json> runs = train("fashion", {"num_workers=0"});
  ASSERT_GE(runs.size(), 8u) << "the other half wants a GPU";
  for (const json& run : runs)
    EXPECT_NEAR(test_accuracy(run), pytorchs_accuracy("cnn", run.at("config"), 3), kTolerance)
        << run.at("name");
}

TEST_F(ShippedSweeps, TheNetworkOfFashionGetsEightyEightPercentInTenEpochs) {
  SKIP_WITHOUT_FASHION_MNIST();
  const std::vector<json> runs =
      train("fashion", {"device=cpu", "num_workers=0", "shuffle=true", "batch_size=100", "lr=0.003",
                        "epochs=10", "dataset.validation=0"});
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_GE(test_accuracy(runs[0]), 0.88);  // 89.2 % with either of two seeds
}

TEST_F(ShippedSweeps, CpuVsCudaGivesTheSameForAnyNumberOfWorkers) {
  SKIP_WITHOUT_FASHION_MNIST();
  const std::vector<json> runs = train("cpu-vs-cuda", {"device=cuda,cpu"});
  ASSERT_GE(runs.size(), 6u);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const json& config = runs[i].at("config");
    if (config.at("batch_size") == 1000) {
      EXPECT_NEAR(test_accuracy(runs[i]), pytorchs_accuracy("cnn", config, 2), 0.05)
          << "shuffled there is better";
    } else {
      // 12 and 6 steps of Adam lead well away from chance, and no further.
      EXPECT_GT(test_accuracy(runs[i]), config.at("batch_size") == 10'000 ? 0.45 : 0.25)
          << runs[i].at("name");
    }
  }
  const auto epochs_of = [&](std::size_t i) {
    std::vector<json> losses;
    for (const json& epoch : runs[i].at("epochs")) losses.push_back(epoch.at("loss"));
    return losses;
  };
  std::size_t compared = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      json a = runs[i].at("params"), b = runs[j].at("params");
      a.erase("num_workers"), b.erase("num_workers");
      if (a != b) continue;
      ++compared;
      EXPECT_EQ(epochs_of(i), epochs_of(j)) << runs[i].at("name");
    }
  }
  EXPECT_GE(compared, 3u);
}

TEST_F(ShippedSweeps, LrBatchShuffleHasTwelveRunsOfWhichSmallBatchesLearnFastest) {
  SKIP_WITHOUT_FASHION_MNIST();
  const std::vector<json> runs = train("lr-batch-shuffle", {"epochs=2"});
  ASSERT_EQ(runs.size(), 12u);
  for (const json& run : runs) {
    const double reference = pytorchs_accuracy("cnn", run.at("config"), 2);
    // Batches of 10,000 make 10 steps: with lr 0.001 that is just enough to see a difference.
    if (std::isnan(reference)) {
      EXPECT_GT(test_accuracy(run), 0.25) << run.at("name");
      EXPECT_LT(test_accuracy(run), 0.7) << run.at("name");
    } else {
      EXPECT_NEAR(test_accuracy(run), reference, 0.05) << run.at("name");
    }
  }
}

TEST_F(ShippedSweeps, MlpMomentumReachesWhatPyTorchReaches) {
  SKIP_WITHOUT_FASHION_MNIST();
  const std::vector<json> runs = train("mlp-momentum", {"device=cpu"});
  ASSERT_EQ(runs.size(), 8u);
  int compared = 0;
  double best = 0;
  for (const json& run : runs) {
    best = std::max(best, test_accuracy(run));
    EXPECT_GT(test_accuracy(run), 0.5) << run.at("name");
    const double reference = pytorchs_accuracy("mlp", run.at("config"), 3);
    if (std::isnan(reference)) continue;
    ++compared;
    EXPECT_NEAR(test_accuracy(run), reference, kTolerance) << run.at("name");
  }
  EXPECT_EQ(compared, 2) << "sgd with lr 0.1, with and without momentum";
  EXPECT_GT(best, 0.84);
}

TEST_F(ShippedSweeps, ResnetLearnsFromEightHundredSamples) {
  SKIP_WITHOUT_FASHION_MNIST();
  // 25 steps an epoch. The rest of the training set would take minutes.
  const std::vector<json> runs =
      train("resnet", {"device=cpu", "dataset.validation=1000", "dataset.limit=800", "batch_size=32"});
  ASSERT_EQ(runs.size(), 4u);
  for (const json& run : runs) EXPECT_GT(test_accuracy(run), 0.6) << run.at("name");  // 69 to 74 %
}

TEST_F(ShippedSweeps, AllSchedulesLearn) {
  SKIP_WITHOUT_FASHION_MNIST();
  const std::vector<json> runs = train("schedules", {"device=cpu", "dataset.limit=20000", "epochs=3"});
  ASSERT_EQ(runs.size(), 6u);
  // A third of the data, so a few points less than fashion.json gets in as many epochs.
  for (const json& run : runs) EXPECT_GT(test_accuracy(run), 0.74) << run.at("name");
}

TEST_F(ShippedSweeps, TpeFindsGoodSettings) {
  SKIP_WITHOUT_FASHION_MNIST();
  const std::vector<json> runs =
      train("search-tpe", {"device=cpu", "dataset.limit=10000", "epochs=1", "search.trials=20"});
  ASSERT_EQ(runs.size(), 20u);
  double best = 0;
  for (const json& run : runs) best = std::max(best, test_accuracy(run));
  EXPECT_GT(best, 0.78);
}

TEST_F(ShippedSweeps, OneForAClusterIsTrainedHereAsWell) {
  SKIP_WITHOUT_FASHION_MNIST();
  const std::vector<json> runs =
      train("slurm", {"device=cpu", "dataset.limit=20000", "epochs=2", "lr=0.01", "batch_size=100"});
  ASSERT_EQ(runs.size(), 2u);
  // A third of the data and two epochs.
  for (const json& run : runs) EXPECT_GT(test_accuracy(run), 0.72) << run.at("name");
}

TEST_F(ShippedSweeps, HalvingTrainsTheBestOfTheGridToTheEnd) {
  SKIP_WITHOUT_FASHION_MNIST();
  const std::vector<json> runs =
      train("search-halving", {"device=cpu", "dataset.limit=2000", R"(lr={"logspace":[0.0001,0.1,4]})",
                               "batch_size=20,200", "network.layers.fc1.out_features=120"});
  ASSERT_EQ(runs.size(), 2u) << "of eight";
  for (const json& run : runs) EXPECT_GT(test_accuracy(run), 0.72) << run.at("name");
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

}  // namespace sweep::testing::tools_shipped_sweeps_test
