// Batch normalisation and pooling by the stand-in libraries: comparison with built-in kernels, choice, and
// trainings.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/engine/engine.h"
#include "core/kernels/cuda/host/library_limits.h"
#include "core/kernels/cuda/libraries/kernel_autotuner.h"
#include "core/kernels/cuda/libraries/kernel_comparison.h"
#include "tests/support/batch.h"
#include "tests/support/environment.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/test_networks.h"

namespace sweep::cuda {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::IsEmpty;

class NormAndPool : public testing::Test {
 protected:
  ~NormAndPool() override { host::set_library_limits({}); }

  // Its timer finds that built-in kernels take the seconds in `own`, one after the other, and libraries 1.
  KernelAutotuner autotuner(std::vector<double> own, const std::string& recorded = "") {
    return KernelAutotuner({.recorded = recorded,
                            .policy = KernelPolicy::kMeasured,
                            .choices = root_ / "choices.json",
                            .timer = [this, own](Stream& stream, const std::function<void()>& work) {
                              work();
                              stream.wait();
                              const std::size_t look = measurements_++;
                              return look % 2 == 0 ? own.at(look / 2) : 1;
                            }});
  }

  const test::TemporaryDirectory directory_;
  const fs::path root_ = directory_.path();
  std::size_t measurements_ = 0;
};

const KernelTimer kAnyClock = [](Stream& stream, const std::function<void()>& work) {
  work();
  stream.wait();
  return 1.0;
};

template <class Shape>
bool agree(const Shape& shape, const LibraryTask& task) {
  const auto plan = open_libraries(0).of(shape)->plan(shape, task, kMaxWorkspace);
  EXPECT_TRUE(plan->deterministic());
  return compare(shape, task, *plan, kAnyClock).agree;
}

constexpr Direction kNormDirections[] = {Direction::kForward, Direction::kInference,
                                         Direction::kBackwardInput};

PoolLayer pool(std::optional<Average> average, int in_height, int in_width, int kernel, int stride, int pad) {
  const auto out = [&](int in) { return (in + 2 * pad - kernel) / stride + 1; };
  return {{3, in_height, in_width, out(in_height), out(in_width), kernel, kernel, stride, stride, pad, pad},
          average};
}

const PoolLayer kPools[] = {pool({}, 8, 8, 2, 2, 0),
                            pool({}, 9, 7, 3, 2, 1),
                            pool({}, 6, 5, 3, 1, 1),
                            pool(Average::kWithPadding, 9, 7, 3, 2, 1),
                            pool(Average::kWithoutPadding, 9, 7, 3, 2, 1),
                            pool(Average::kWithoutPadding, 8, 6, 2, 2, 0),
                            {{3, 7, 7, 3, 2, 0, 0, 0, 0, 0, 0}, Average::kAdaptive},
                            {{3, 8, 6, 1, 1, 0, 0, 0, 0, 0, 0}, Average::kAdaptive}};

TEST_F(NormAndPool, AgreeWithBuiltInKernelsInEveryDirection) {
  for (const bool add : {false, true}) {
    for (const BatchNormShape& shape : {BatchNormShape{4, 30, 1e-5f, 0.1f}, BatchNormShape{8, 1, 0.1f, 1},
                                        BatchNormShape{12, 700, 1e-3f, 0}}) {
      for (const Direction direction : kNormDirections) {
        EXPECT_TRUE(agree(
            shape,
            {.direction = direction, .images = 9, .add = add && direction == Direction::kBackwardInput}))
            << to_string(direction) << " of " << shape.channels << " channels";
      }
    }
    for (const PoolLayer& layer : kPools) {
      for (const Direction direction : {Direction::kForward, Direction::kBackwardInput}) {
        EXPECT_TRUE(agree(
            layer,
            {.direction = direction, .images = 5, .add = add && direction == Direction::kBackwardInput}))
            << to_string(direction) << " of pool " << &layer - kPools;
      }
    }
  }
}

TEST_F(NormAndPool, DoNotAgreeIfTheLibraryIsWrong) {
  host::set_library_limits({.wrong_by = 3});
  for (const Direction direction : kNormDirections)
    EXPECT_FALSE(agree(BatchNormShape{4, 30, 1e-5f, 0.1f}, {.direction = direction, .images = 9}))
        << to_string(direction);
  for (const PoolLayer& layer : kPools)
    EXPECT_FALSE(agree(layer, {.direction = Direction::kBackwardInput, .images = 9}));
  host::set_library_limits({.refuses = true});
  EXPECT_FALSE(agree(BatchNormShape{4, 30, 1e-5f, 0.1f}, {.direction = Direction::kForward, .images = 9}));
}

// Just enough values to be measured.
constexpr BatchNormShape kWideNorm{16, 1024, 1e-5f, 0.1f};
const std::vector<LibraryTask> kTraining = {{.direction = Direction::kForward, .images = 64},
                                            {.direction = Direction::kBackwardInput, .images = 64}};

TEST_F(NormAndPool, AreMeasuredFromAMillionValuesOn) {
  EXPECT_EQ(products(kWideNorm, kTraining[0]), kMinProducts);
  BatchNormShape small = kWideNorm;
  --small.plane;
  EXPECT_THAT(autotuner({2, 2}).choose_all_or_none("bn", small, kTraining), IsEmpty());
  EXPECT_EQ(measurements_, 0u);
}

TEST_F(NormAndPool, GoToALibraryAsAWholeIfForwardSavesDataForBackward) {
  KernelAutotuner both = autotuner({2, 2});
  EXPECT_EQ(both.choose_all_or_none("bn", kWideNorm, kTraining).size(), 2u);
  EXPECT_EQ(json::parse(both.record())["layers"], json::parse(R"({"bn": ["forward", "input"]})"));
  EXPECT_EQ(json::parse(both.record())["libraries"], json::parse(R"(["cuDNN stand-in"])"));
  EXPECT_EQ(measurements_, 4u);

  // Kept as they are, whatever would be measured now.
  EXPECT_EQ(autotuner({}).choose_all_or_none("bn", kWideNorm, kTraining).size(), 2u);
  const std::string record = both.record();
  KernelAutotuner same = autotuner({}, record);
  same.choose_all_or_none("bn", kWideNorm, kTraining);
  EXPECT_EQ(same.record(), record);

  for (const std::vector<double>& own : {std::vector<double>{0.5, 2}, {2, 0.5}}) {
    measurements_ = 0;
    fs::remove(root_ / "choices.json");
    KernelAutotuner one = autotuner(own);
    EXPECT_THAT(one.choose_all_or_none("bn", kWideNorm, kTraining), IsEmpty());
    EXPECT_EQ(one.record(), "own");
  }
}

TEST_F(NormAndPool, UseBuiltInKernelsWithoutALibrary) {
  host::set_library_limits({.installed = false});
  EXPECT_THAT(autotuner({}).choose_all_or_none("bn", kWideNorm, kTraining), IsEmpty());
  EXPECT_THAT(autotuner({}).choose("pool", pool({}, 512, 512, 2, 2, 0),
                                   {{.direction = Direction::kForward, .images = 64}}),
              IsEmpty());
}

// ---- the engine ----

LayerSpec plain(const std::string& name, const std::string& type) { return {name, type, {}}; }

LayerSpec pooling(const std::string& name, const std::string& type, std::int64_t kernel, std::int64_t stride,
                  std::int64_t padding) {
  return {name, type, {{"kernel_size", kernel}, {"stride", stride}, {"padding", padding}}};
}

// Layers that no built-in kernel fuses.
Network some_network(std::int64_t channels) {
  return Network(
      {"n",
       {test::conv("conv1", channels, 3), plain("bn1", "batch_norm2d"), plain("leaky1", "leaky_relu"),
        pooling("max", "max_pool2d", 3, 2, 1), test::conv("conv2", channels, 3), plain("bn2", "batch_norm2d"),
        plain("tanh", "tanh"), pooling("average", "avg_pool2d", 2, 1, 1), test::flatten("flatten"),
        test::linear("out", 10)}},
      {1, 13, 13});
}

struct Trained {
  std::vector<float> parameters, buffers, outputs;
  std::string kernels;
};

// 8 steps, some with batches of 3 instead of 5.
Trained trained(const Network& network, const char* policy, const std::string& kernels = "",
                const std::string& device = "cuda") {
  const test::Environment variable("SWEEP_CUDA_KERNELS", policy);
  const auto engine =
      make_engine(network, {.device = parse_device(device), .batch_size = 5, .kernels = kernels});
  engine->set_parameters(initial_parameters(network, 3));
  for (std::uint64_t step = 0; step < 8; ++step)
    engine->train(test::random_batch(step % 3 == 0 ? 3 : 5, 169, 10, step).view(), 0.05);
  std::vector<float> outputs(50);
  const test::OwnedBatch batch = test::random_batch(5, 169, 10, 99);
  engine->predict(batch.view(), outputs);
  return {engine->parameters(), engine->buffers(), outputs, engine->kernels()};
}

void expect_close(const Trained& a, const Trained& b) {
  const auto close = [](const char* what, const std::vector<float>& x, const std::vector<float>& y) {
    ASSERT_EQ(x.size(), y.size());
    for (std::size_t i = 0; i < x.size(); ++i)
      EXPECT_NEAR(x[i], y[i], 1e-3 * (1 + std::abs(x[i]))) << what << i;
  };
  close("parameter ", a.parameters, b.parameters);
  close("running statistic ", a.buffers, b.buffers);
  close("output ", a.outputs, b.outputs);
}

TEST_F(NormAndPool, TrainLikeBuiltInKernelsAndTheCpu) {
  const Network network = some_network(8);
  const Trained cpu = trained(network, "", "", "cpu"), own = trained(network, "own"),
                library = trained(network, "library");
  const json layers = json::parse(library.kernels)["layers"];
  EXPECT_EQ(layers["bn1"], json::parse(R"(["evaluate", "forward", "input"])"));
  EXPECT_EQ(layers["bn2"], layers["bn1"]);
  EXPECT_EQ(layers["max"], json::parse(R"(["forward", "input"])"));
  EXPECT_EQ(layers["average"], layers["max"]);
  expect_close(own, cpu);
  expect_close(library, cpu);
  EXPECT_NE(library.parameters, own.parameters) << "both used the same kernels";
  for (const char* policy : {"own", "measured"}) {
    const Trained again = trained(network, policy, library.kernels);
    EXPECT_EQ(again.kernels, library.kernels);
    EXPECT_EQ(again.parameters, library.parameters);
    EXPECT_EQ(again.buffers, library.buffers);
  }
}

TEST_F(NormAndPool, UseBuiltInKernelsForSmallBatchesAsAWhole) {
  const Network network = some_network(8);
  const Trained own = trained(network, "own");
  host::set_library_limits({.fewest_images = 4});
  expect_close(trained(network, "library"), own);
}

TEST_F(NormAndPool, UseBuiltInKernelsForArraysThatAreNotAligned) {
  const Network network = some_network(6);  // 24 bytes a channel's array
  const Trained library = trained(network, "library");
  const json layers = json::parse(library.kernels)["layers"];
  EXPECT_FALSE(layers.contains("bn1"));
  EXPECT_FALSE(layers.contains("bn2"));
  EXPECT_TRUE(layers.contains("max"));
  expect_close(library, trained(network, "own"));
}

}  // namespace
}  // namespace sweep::cuda
