// Whole trainings by way of the CUDA runtime API, and the devices that the program then finds.

#include "core/engine/engine.h"
#include "core/kernels/cuda/runtime/cuda_devices.h"
#include "tests/cudart/machine.h"
#include "tests/support/test_networks.h"

namespace sweep::cuda::failing_device_test {

// The driver is asked once per process: each machine gets one.
void exit_with_reason(const cudart::Machine& machine, const char* expected, bool fails = false) {
  cudart::start(machine);
  if (fails) cudart::fail("cudaGetDeviceCount", cudart::CallError::kSystemDriverMismatch);
  const std::optional<std::string> reason = cuda_missing_reason();
  if (!reason || reason->find(expected) == std::string::npos || !list_cuda_devices().empty()) {
    std::fprintf(stderr, "got %s", reason ? reason->c_str() : "no reason");
    std::exit(1);
  }
  std::exit(0);
}

TEST(CudaDevicesDeathTest, SaysWhyThereIsNone) {
  EXPECT_EXIT(exit_with_reason({.driver = 0}, "no NVIDIA driver is loaded"), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(
      exit_with_reason({.driver = 12040}, "the NVIDIA driver supports CUDA 12.4, but this build needs CUDA"),
      testing::ExitedWithCode(0), "");
  EXPECT_EXIT(exit_with_reason({.devices = 0}, "sees no GPU (CUDA_VISIBLE_DEVICES may hide it)"),
              testing::ExitedWithCode(0), "");
  EXPECT_EXIT(exit_with_reason({}, "the CUDA runtime reports: text of error 803", true),
              testing::ExitedWithCode(0), "");
}

TEST(CudaDevicesDeathTest, ADeviceThatDoesNotAnswerKeepsItsPlace) {
  const auto check = [] {
    cudart::start({.devices = 3});
    cudart::fail("cudaGetDeviceProperties", cudart::CallError::kOperatingSystem, 1);
    const std::vector<DeviceInfo> devices = list_cuda_devices();
    const bool right =
        devices.size() == 3 && devices[1].capability.empty() && devices[2].capability == "9.0" &&
        devices[2].description == "CUDA stand-in on the host, for tests" && devices[2].device.index == 2 &&
        cuda_device_reason(devices[1]) && devices[2].memory_bytes == std::size_t{4} << 30;
    std::exit(right ? 0 : 1);
  };
  EXPECT_EXIT(check(), testing::ExitedWithCode(0), "");
}

struct Training {
  NetworkSpec network;
  Shape input;
};

// Steps on so many images each, the first of them most.
std::vector<float> train(const Training& training, const std::vector<std::size_t>& sizes,
                         const ParallelOptions& parallel = {}) {
  const Network network(training.network, training.input);
  EngineOptions options{.device = parse_device("cuda"), .batch_size = sizes[0]};
  options.parallel = parallel;
  const auto engine = make_engine(network, options);
  engine->set_parameters(initial_parameters(network, 3));
  for (std::size_t step = 0; step < sizes.size(); ++step) {
    const test::OwnedBatch batch = test::random_batch(sizes[step], element_count(network.input()), 10, step);
    engine->train(batch.view(), 0.01);
    if (step % 5 == 4) engine->evaluate(batch.view());
  }
  std::vector<float> outcome = engine->parameters();
  outcome.push_back(static_cast<float>(engine->take_totals().loss));
  return outcome;
}

// More than are started at once.
const std::vector<std::size_t> kManySteps = {6, 6, 6, 2, 6, 6, 6, 2, 6, 6, 6, 2, 6, 6, 6, 2, 6, 6, 6, 2};

class EngineOnCudart : public testing::Test {
 protected:
  void SetUp() override { cudart::start({}); }
  void TearDown() override {
    EXPECT_EQ(cudart::alive(), cudart::Alive{}) << "something is not released";
    EXPECT_THAT(cudart::mistakes(), IsEmpty());
  }
  const test::Environment builtin_kernels_{"SWEEP_CUDA_KERNELS", "builtin"};
  const Training trainings_[3] = {
      {test::deeplizard(), {1, 28, 28}}, {test::mlp(), {1, 7, 7}}, {test::small_residual(), {2, 9, 8}}};
};

// Of batches that make more blocks than a small GPU has multiprocessors, and fewer than a large one has.
TEST_F(EngineOnCudart, GivesTheSameBitsOnGpusOfAllSizes) {
  constexpr std::size_t kShared[] = {std::size_t{163} << 10, std::size_t{227} << 10};  // of an A100, an H100
  for (const Training& training : trainings_) {
    std::vector<float> first;
    for (const int multiprocessors : {16, 80, 132, 264}) {
      for (const std::size_t shared_bytes : kShared) {
        cudart::start({.multiprocessors = multiprocessors, .shared_bytes = shared_bytes});
        const std::vector<float> outcome = train(training, {150, 40});
        if (first.empty()) first = outcome;
        EXPECT_EQ(outcome, first) << training.network.name << " on " << multiprocessors
                                  << " multiprocessors with " << shared_bytes << " bytes";
      }
    }
  }
}

// Whichever call fails, there is an error that says so, and nothing is leaked or used afterwards.
TEST_F(EngineOnCudart, EndsWithAnErrorWhicheverCallFails) {
  ParallelOptions stages;
  stages.pipeline = PipelineOptions{.stages = 2, .first_layers = {}, .micro_batches = 2};
  for (const std::string function :
       {"cudaMalloc", "cudaMallocHost", "cudaStreamCreateWithFlags", "cudaEventCreateWithFlags",
        "cudaEventRecord", "cudaEventSynchronize", "cudaMemcpyAsync", "cudaMemcpyPeerAsync",
        "cudaMemsetAsync", "cudaStreamSynchronize", "cudaStreamBeginCapture", "cudaStreamEndCapture",
        "cudaGraphInstantiate", "cudaGraphUpload", "cudaGraphLaunch", "cudaLaunchKernel", "cudaSetDevice"}) {
    const bool allocates = function == "cudaMalloc";
    const ParallelOptions parallel = function == "cudaMemcpyPeerAsync" ? stages : ParallelOptions{};
    cudart::start({});
    train(trainings_[1], kManySteps, parallel);
    const int calls = cudart::calls(function);
    ASSERT_GT(calls, 0) << function;
    std::set<int> failing = {0, calls / 2, calls - 1};
    for (int i = 0; allocates && i < calls; ++i) failing.insert(i);
    for (const int i : failing) {
      cudart::start({});
      cudart::fail(function,
                   allocates ? cudart::CallError::kMemoryAllocation : cudart::CallError::kOperatingSystem, i);
      try {
        train(trainings_[1], kManySteps, parallel);
        // Errors of the last clean-up are nobody's concern.
        EXPECT_TRUE(i == calls - 1 && !allocates) << function << " number " << i << ": nobody noticed";
      } catch (const DeviceError& error) {
        EXPECT_THAT(error.what(), HasSubstr(allocates ? "out of memory" : "(cudaErrorOperatingSystem)"));
      }
      EXPECT_EQ(cudart::alive(), cudart::Alive{}) << function << " number " << i;
    }
  }
}

TEST_F(EngineOnCudart, ReportsAKernelThatFailsAndReleasesWhatItCan) {
  const Training& training = trainings_[1];
  for (const int kernels_before : {0, 7, 40}) {
    cudart::start({});
    cudart::fail_kernel(cudart::CallError::kLaunchFailure, kernels_before);
    EXPECT_THAT([&] { train(training, kManySteps); },
                ThrowsMessage<DeviceError>(
                    AllOf(HasSubstr("(cudaErrorLaunchFailure)"), HasSubstr("start it again"))));
    cudart::start({});  // The driver takes back what a broken context had.
  }
}

}  // namespace sweep::cuda::failing_device_test
