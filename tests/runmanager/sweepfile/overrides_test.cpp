// What the command line changes in a sweep file.

#include "tests/support/sweep_folder.h"

namespace sweep::overrides_test {

using Overrides = testing::InSweepFolder;

TEST_F(Overrides, OptionsOfNetworksAreNoParametersOfAProgram) {
  LoadOptions options;
  options.epochs = "2";
  options.seed = "3";
  options.deterministic = false;
  EXPECT_EQ(SweepFolder().error(R"({"command": ["true"]})", {}, options),
            "--epochs 2: is for networks, want epochs=2 for a parameter of the program\n"
            "--no-deterministic: is for networks, want deterministic=false for a parameter of the program");
}

TEST_F(Overrides, TheOptionsForEpochsAndSeedAreOverrides) {
  LoadOptions options;
  options.epochs = "9";
  options.seed = "8";
  const Sweep sweep =
      folder.load(SweepFolder::with(R"("epochs": 5, "params": {"seed": [1, 2]})"), {}, options);
  ASSERT_EQ(sweep.runs.size(), 1u);
  EXPECT_EQ(sweep.runs[0].epochs, 9);
  EXPECT_EQ(sweep.runs[0].seed, 8u);
  options.epochs = "many";
  EXPECT_EQ(folder.error(SweepFolder::with("\"lr\": 1"), {}, options),
            "--epochs many: epochs: got \"many\", want an integer >= 1");
}

TEST_F(Overrides, TheDeterministicOptionReplacesAnAxis) {
  LoadOptions options;
  for (const bool deterministic : {true, false}) {
    options.deterministic = deterministic;
    const Sweep sweep =
        folder.load(SweepFolder::with(R"("params": {"deterministic": [true, false]})"), {}, options);
    ASSERT_EQ(sweep.runs.size(), 1u);
    EXPECT_EQ(sweep.runs[0].deterministic, deterministic);
  }
}

}  // namespace sweep::overrides_test
