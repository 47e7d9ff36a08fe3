// Processes, each with a GPU of its own, that train one network: the whole program on stand-in devices.

#include "tests/support/tensor_bytes.h"
#include "tests/tools/mpi_program.h"

namespace sweep::testing::cuda_ranks_test {

struct Trained {
  std::vector<json> epochs;  // loss and accuracy of each
  std::string tensors;       // of the last checkpoint: parameters, buffers and the optimizer's state
};

void expect_same(const Trained& found, const Trained& expected) {
  EXPECT_EQ(found.epochs, expected.epochs);
  EXPECT_TRUE(test::same_bytes(found.tensors, expected.tensors));
}

class CudaRanks : public ProgramFolder {
 protected:
  void SetUp() override {
    if (const std::string reason = mpi_unusable_reason(folder_.path()); !reason.empty())
      GTEST_SKIP() << reason;
    write_shared_training(folder_, "cuda");
  }

  // With N devices in one process, or in N processes.
  Trained train(const std::string& name, int devices, bool processes, int epochs,
                const std::string& setting = "RANKS=1", const std::vector<std::string>& more = {}) const {
    const std::vector<std::string> words =
        joined({"s.json", "optimizer=adam", "epochs=" + std::to_string(epochs), "name=" + name,
                "parallel.data=" + std::to_string(devices), "--quiet"},
               more);
    const Finished finished = processes ? run_mpi(devices, words, folder_.path(), setting) : run(words);
    EXPECT_EQ(finished.code, 0) << finished.out << finished.err;
    EXPECT_FALSE(std::filesystem::exists(path("runs") / (name + "-2"))) << "one rank alone writes";
    return read(name);
  }

  Trained read(const std::string& name) const {
    return {measured(record(name + "/run")),
            test::tensor_bytes(path("runs/" + name + "/run/checkpoint.safetensors"))};
  }

  Finished run_ranks(int ranks, const std::string& setting) const {
    return run_mpi(ranks, {"s.json", "parallel.data=2", "epochs=1", "--quiet"}, folder_.path(), setting);
  }
};

TEST_F(CudaRanks, GiveTheBitsOfTwoDevicesOfOneProcess) {
  const Trained two = train("two", 2, false, 2);
  ASSERT_EQ(two.epochs.size(), 2u);
  ASSERT_FALSE(two.tensors.empty());
  for (const int ranks : {2, 3, 4}) expect_same(train("ranks-" + std::to_string(ranks), ranks, true, 2), two);
  // As Slurm does with --gpus-per-task=1.
  expect_same(train("alone", 3, true, 2, "CUDA_VISIBLE_DEVICES=$OMPI_COMM_WORLD_RANK"), two);
}

TEST_F(CudaRanks, GoOnWithAnotherNumber) {
  const Trained two = train("two", 2, false, 4);
  train("several", 3, true, 1);
  train("several", 2, false, 2);
  train("several", 4, true, 3);
  expect_same(train("several", 2, true, 4), two);
}

// Each process has a set of devices with the layers between them.
TEST_F(CudaRanks, MayHaveSetsOfDevices) {
  const std::vector<std::string> turns = {"accumulate=2"};
  const Trained two = train("without", 2, false, 2, "RANKS=1", turns);
  std::vector<std::string> stages = turns;
  stages.emplace_back(R"(parallel.pipeline={"stages": ["pool", "out"], "micro_batches": 2})");
  expect_same(train("threads", 2, false, 2, "RANKS=1", stages), two);
  expect_same(train("processes", 2, true, 2, "RANKS=1", stages), two);
  // As Slurm does with --gpus-per-task=2; the stages take one each.
  expect_same(train("alone", 3, true, 2,
                    "CUDA_VISIBLE_DEVICES=$((2*OMPI_COMM_WORLD_RANK)),$((2*OMPI_COMM_WORLD_RANK+1))",
                    {"accumulate=2", R"(parallel.model={"conv": "cuda:0", "out": "cuda:1"})"}),
              two);
}

// The next run might be one that they can train.
TEST_F(CudaRanks, GoOnAfterARunThatTheyCannotTrain) {
  const Finished finished =
      run_mpi(2, {"s.json", "parallel.data=2", "epochs=1", "name=none", "lr=[0.5,0.25]", "--quiet"},
              folder_.path(), "SWEEP_CUDA_HOST_MODEL=model-$OMPI_COMM_WORLD_RANK");
  EXPECT_EQ(finished.code, 1) << finished.err;
  for (const std::string run : {"none/lr=0.5", "none/lr=0.25"}) {
    EXPECT_EQ(record(run).at("status"), "failed");
    EXPECT_THAT(record(run).at("error").get<std::string>(), HasSubstr("has a model-1, but rank 0 on"));
  }
}

TEST_F(CudaRanks, AreRefusedWithoutAGpuOfOneModelForEach) {
  const Finished same = run_ranks(2, "CUDA_VISIBLE_DEVICES=2");
  EXPECT_NE(same.code, 0);
  EXPECT_THAT(same.err + same.out, HasSubstr("has the same GPU as rank 0 on"));
  const Finished models = run_ranks(2, "SWEEP_CUDA_HOST_MODEL=model-$OMPI_COMM_WORLD_RANK");
  EXPECT_NE(models.code, 0);
  EXPECT_THAT(models.err + models.out, HasSubstr("has a model-1, but rank 0 on"));
  const Finished none = run_ranks(2, "CUDA_VISIBLE_DEVICES=${OMPI_COMM_WORLD_RANK#1}");
  EXPECT_NE(none.code, 0);
  EXPECT_THAT(none.err + none.out,
              HasSubstr("rank 1: the NVIDIA driver sees no GPU (CUDA_VISIBLE_DEVICES may hide it)"));
}

}  // namespace sweep::testing::cuda_ranks_test
