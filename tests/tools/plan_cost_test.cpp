// Compares the prediction of `sweep plan` with what the program then takes; and tests `sweep lr-find`.

#include "tests/support/data_files.h"
#include "tests/support/fashion_mnist.h"
#include "tests/support/program_folder.h"
#include "tests/support/quarters.h"

namespace sweep::testing::plan_cost_test {

struct MemoryCase {
  const char* name;
  const char* network;
  std::vector<std::string> overrides;
};

// The sweep's own process has to take less than the worker: only the larger of the two is measured.
class PlannedMemory : public ProgramFolder, public ::testing::WithParamInterface<MemoryCase> {
 protected:
  // Makes so few pictures that the sweep that reads them is small.
  void SetUp() override {
    test::write_idx_set(path("few"), "train", 3000, 28);
    test::write_idx_set(path("few"), "t10k", 300, 28);
  }
};

TEST_P(PlannedMemory, IsWithinAFifthOfTheWorkersPeak) {
  SKIP_WITHOUT_FASHION_MNIST();
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers use memory of their own";
#endif
  const std::string source = SWEEP_SOURCE_DIR;
  const std::vector<std::string> words =
      joined({source + "/sweeps/fashion.json", "network=" + source + "/sweeps/networks/" + GetParam().network,
              "device=cpu", "lr=0.01", "epochs=1", "shuffle=true", "--threads", "2"},
             GetParam().overrides);
  const json planned = output(joined({"plan"}, words)).at("runs").at(0);
  const auto predicted = planned.at("memory_bytes").get<double>();
  const auto measured = static_cast<double>(run(words).peak_bytes);
  constexpr double kError = 0.2;
  EXPECT_NEAR(predicted, measured, kError * measured) << planned.at("memory");
  // The disk, while it is there.
  double bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder_.path() / "runs/fashion")) {
    const bool of_sweep = entry.path().parent_path() == folder_.path() / "runs/fashion";
    if (entry.is_regular_file() && !of_sweep) bytes += static_cast<double>(entry.file_size());
  }
  const auto disk = planned.at("disk_bytes").get<double>();
  EXPECT_NEAR(disk, bytes, kError * bytes);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, PlannedMemory,
    ::testing::Values(
        MemoryCase{"SmallBatch",
                   "fashion-cnn.json",
                   {"batch_size=100", "num_workers=0", R"(dataset={"name": "few", "path": "few"})"}},
        MemoryCase{"LargeBatchWithWorkers",
                   "fashion-cnn.json",
                   {"batch_size=10000", "num_workers=2", "dataset.validation=10000"}},
        MemoryCase{"Sgd", "fashion-cnn.json", {"batch_size=1000", "num_workers=0", "optimizer=sgd"}},
        MemoryCase{"WideLayers",
                   "mlp.json",
                   {"batch_size=1000", "num_workers=0", "network.layers.fc1.out_features=8192",
                    "dataset.limit=3000", "optimizer=adam"}},
        MemoryCase{"OneBlock",
                   "fashion-cnn.json",
                   {"batch_size=16", "num_workers=0", "network.layers.conv1.out_channels=1024",
                    "optimizer=sgd", R"(dataset={"name": "few", "path": "few", "limit": 64})"}},
        MemoryCase{"BatchNorm", "resnet.json", {"batch_size=256", "num_workers=0", "dataset.limit=512"}}),
    [](const auto& kind) { return std::string(kind.param.name); });

class PlanOfQuarters : public ProgramFolder {
 protected:
  PlanOfQuarters() { write_quarters(folder_.path()); }
};

TEST_F(PlanOfQuarters, ThePilotsPredictionIsComparedWithTheSweepOnce) {
  EXPECT_GT(output({"plan", "quarters.json", "--pilot"}).at("seconds").get<double>(), 0);
  EXPECT_FALSE(exists("runs")) << "a plan leaves nothing";
  EXPECT_THAT(run({"quarters.json"}).err,
              ::testing::ContainsRegex("Predicted [0-9.]+ s, took [0-9.]+ s \\([+-][0-9.]+ %\\)"));
  EXPECT_THAT(run({"quarters.json"}).err, Not(HasSubstr("Predicted")));
}

TEST_F(PlanOfQuarters, SaysWhatWouldBeReplaced) {
  run({"quarters.json", "epochs=1"});
  const auto fates = [&](const std::vector<std::string>& more, int code = 0) {
    std::set<std::string> all;
    const json plan = output(joined({"plan", "quarters.json", "epochs=1"}, more), code);
    for (const json& entry : plan.at("runs")) all.insert(entry.at("fate"));
    return all;
  };
  EXPECT_EQ(fates({}), std::set<std::string>{"kept"});
  EXPECT_EQ(fates({"seed=77"}, 2), std::set<std::string>{"in the way"});
  EXPECT_EQ(fates({"seed=77", "--replace"}), std::set<std::string>{"replaced"});
  EXPECT_EQ(fates({"--logdir", "elsewhere"}), std::set<std::string>{"new"});
}

TEST_F(PlanOfQuarters, TakesNoRunThatCannotBeReadForANewOne) {
  run({"quarters.json", "epochs=1"});
  const fs::path first = path("runs/quarters") / results("quarters").at(0).at("name").get<std::string>();
  fs::permissions(first, fs::perms::none);
  const Finished finished = run_program({"plan", "quarters.json", "epochs=1"}, folder_.path(),
                                        {.standard_output = {}, .obeys_permissions = true});
  fs::permissions(first, fs::perms::owner_all);
  if (finished.code == kCannotDrop) GTEST_SKIP() << "root may read everything";
  EXPECT_EQ(finished.code, 2);
  EXPECT_EQ(finished.err,
            "sweep: " + fs::relative(first, folder_.path()).string() + "/run.json: Permission denied\n");
}

TEST_F(PlanOfQuarters, LrFindSuggestsALearningRateThatTrainsAndLeavesTheSweepAlone) {
  run({"quarters.json", "epochs=1"});
  const std::string before = content("runs/quarters/results.json");
  const Finished found = run({"lr-find", "quarters.json", "--json", "--tensorboard", "--name", "a b"});
  EXPECT_EQ(found.err, "To look at it: tensorboard --logdir 'runs/a b.lr-find'\n");
  const json curve = json::parse(found.out);
  EXPECT_EQ(run({"lr-find", "quarters.json", "--json", "--name", "a b"}).out, found.out)
      << "the same bits each time";
  EXPECT_EQ(run({"lr-find", "quarters.json", "--steps", "5"}, 2).err,
            "sweep: --steps: got 5, want a whole number from 10 to 1000000\nTry \"sweep lr-find --help\".\n");
  EXPECT_EQ(content("runs/quarters/results.json"), before);
  EXPECT_TRUE(fs::is_directory(folder_.path() / "runs/a b.lr-find"));
  ASSERT_FALSE(curve.at("minimum_tenth").is_null());
  const std::string lr = curve.at("minimum_tenth").dump();
  run({"quarters.json", "lr=" + lr, "name=found", "epochs=6"});
  for (const json& trained : results("found")) {
    EXPECT_LT(trained.at("epochs").back().at("loss").get<double>(),
              0.8 * trained.at("epochs").front().at("loss").get<double>());
  }
}

}  // namespace sweep::testing::plan_cost_test
