// Trainings with the stand-in libraries, against the built-in kernels and the CPU; what record() says of
// them; fallbacks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/engine/engine.h"
#include "core/kernels/cuda/host/library_limits.h"
#include "tests/support/batch.h"
#include "tests/support/environment.h"
#include "tests/support/test_networks.h"

namespace sweep::cuda {
namespace {

using nlohmann::json;

class LibraryTraining : public testing::Test {
 protected:
  ~LibraryTraining() override { host::set_library_limits({}); }
};

NetworkSpec some_network() {
  return {"n",
          {test::conv("conv", 5, 3),
           {"leaky", "leaky_relu", {}},
           test::flatten("flatten"),
           test::linear("fc1", 12),
           test::relu("relu"),
           test::linear("out", 10)}};
}

struct Trained {
  std::vector<float> parameters;
  std::string kernels;
};

// 8 steps, some with batches of 3 instead of 5.
Trained trained(const Network& network, const std::string& policy, const std::string& kernels = "",
                const std::string& device = "cuda") {
  const test::Environment variable("SWEEP_CUDA_KERNELS", policy.c_str());
  const auto engine =
      make_engine(network, {.device = parse_device(device), .batch_size = 5, .kernels = kernels});
  engine->set_parameters(initial_parameters(network, 3));
  for (std::uint64_t step = 0; step < 8; ++step)
    engine->train(test::random_batch(step % 3 == 0 ? 3 : 5, 49, 10, step).view(), 0.1);
  return {engine->parameters(), engine->kernels()};
}

void expect_close(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-4) << i;
}

TEST_F(LibraryTraining, AgreesWithBuiltInKernelsAndTheCpu) {
  const Network network(some_network(), {1, 7, 7});
  const Trained cpu = trained(network, "", "", "cpu"), own = trained(network, "own"),
                library = trained(network, "library");
  EXPECT_EQ(cpu.kernels, "");
  EXPECT_EQ(own.kernels, "own");
  EXPECT_EQ(json::parse(library.kernels)["layers"],
            json::parse(R"({"conv": ["forward", "weights"], "fc1": ["forward", "weights", "input"],
                            "out": ["forward", "weights", "input"]})"));
  expect_close(own.parameters, cpu.parameters);
  expect_close(library.parameters, cpu.parameters);
  EXPECT_NE(library.parameters, own.parameters) << "both used the same kernels";
}

TEST_F(LibraryTraining, FallsBackAndRecordsItIfAForcedLibraryHasNoAlgorithm) {
  const Network network(some_network(), {1, 7, 7});
  host::set_library_limits({.has_input_gradients = false});
  const Trained library = trained(network, "library");
  EXPECT_EQ(json::parse(library.kernels)["layers"]["fc1"], json::parse(R"(["forward", "weights"])"));
  EXPECT_EQ(json::parse(library.kernels)["no_algorithm"],
            json::parse(R"({"fc1": ["input"], "out": ["input"]})"));
  const Trained resumed = trained(network, "own", library.kernels);
  EXPECT_EQ(resumed.kernels, library.kernels);
  EXPECT_EQ(resumed.parameters, library.parameters);
}

TEST_F(LibraryTraining, FallsBackIfAForcedLibraryRefusesToRun) {
  const Network network(some_network(), {1, 7, 7});
  const Trained own = trained(network, "own");
  host::set_library_limits({.refuses = true});
  const Trained library = trained(network, "library");
  EXPECT_EQ(library.kernels, "own");
  expect_close(library.parameters, own.parameters);
}

TEST_F(LibraryTraining, OpensTheLibrariesOncePerProcessAndDevice) {
  host::set_library_limits({});
  const int before = host::libraries_opened();
  const Network network(some_network(), {1, 7, 7});
  for (int engine = 0; engine < 3; ++engine) trained(network, "library");
  EXPECT_EQ(host::libraries_opened(), before + 1);
  host::set_library_limits({.installed = false});
  EXPECT_EQ(trained(network, "library").kernels, "own");
}

TEST_F(LibraryTraining, GivesTheSameBitsWithTheRecordOfAnEarlierEngine) {
  const Network network(some_network(), {1, 7, 7});
  const Trained own = trained(network, "own"), library = trained(network, "library");
  for (const Trained& first : {own, library}) {
    for (const char* policy : {"own", "library", "measured"}) {
      const Trained again = trained(network, policy, first.kernels);
      EXPECT_EQ(again.kernels, first.kernels);
      EXPECT_EQ(again.parameters, first.parameters);
    }
  }
}

TEST_F(LibraryTraining, UsesBuiltInKernelsForSmallBatchesThatTheLibraryDoesNotTake) {
  const Network network(some_network(), {1, 7, 7});
  const Trained own = trained(network, "own");
  host::set_library_limits({.fewest_images = 4});
  const Trained library = trained(network, "library");
  EXPECT_NE(library.kernels, "own");
  expect_close(library.parameters, own.parameters);
}

}  // namespace
}  // namespace sweep::cuda
