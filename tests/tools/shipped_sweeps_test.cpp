// The shipped sweeps on the data that they name, unchanged except for what would take long. curves_test.cpp
// and tests/core/engine/training_test.cpp compare trainings with PyTorch's.
// Sweeps of pictures that are not here run on generated ones in tutorials_test.cpp.

#include "tests/support/fashion_mnist.h"
#include "tests/support/program_folder.h"

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
  std::vector<std::string> words = {"dataset.limit=" + std::to_string(GetParam().samples)};
  words.insert(words.end(), GetParam().overrides.begin(), GetParam().overrides.end());
  std::size_t count = 0;
  double best = 0;
  for (const json& run : train(GetParam().name, words)) {
    if (run.at("params").value("device", "cpu") != "cpu") continue;
    ++count;
    best = std::max(best, test_accuracy(run));
    EXPECT_GT(test_accuracy(run), GetParam().every) << run.at("name");
  }
  EXPECT_EQ(count, GetParam().runs);
  EXPECT_GT(best, GetParam().best_one);
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

}  // namespace sweep::testing::tools_shipped_sweeps_test
