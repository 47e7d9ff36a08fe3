// runtime.cpp, the part of the CUDA engine that calls the CUDA runtime API, on a machine that fails as asked.
#include "core/kernels/cuda/runtime/runtime.h"

#include "core/kernels/cuda/runtime/cuda_devices.h"
#include "core/kernels/cuda/runtime/kernel.h"
#include "tests/cudart/machine.h"
#include "tests/support/training.h"

// Not those of test_device.cpp, which asks for the device before any test.
sweep::Device sweep::test::device() { return {DeviceType::kCuda, 0}; }
bool sweep::test::device_is_stand_in() { return true; }

namespace sweep::cuda::runtime_test {

// Each test has a machine of its own, and leaves nothing behind on it.
class CudaRuntime : public testing::Test {
 protected:
  void SetUp() override { cudart::start({}); }
  void TearDown() override {
    EXPECT_EQ(cudart::alive(), cudart::Alive{}) << "something is not released";
    EXPECT_THAT(cudart::mistakes(), IsEmpty());
  }
};

__global__ void double_kernel(int count, float* values) {
  for_each_index(count, [=](int i) { values[i] *= 2; });
}

void launch_double(Stream& stream, const Array<float>& values) {
  launch(stream, double_kernel, {1}, {{32}}, static_cast<int>(values.size()), values.data());
}

TEST_F(CudaRuntime, CopiesFromPinnedMemoryWithoutWaiting) {
  Stream stream;
  const PinnedMemory pinned(sizeof(float));
  auto* const value = reinterpret_cast<float*>(pinned.data());
  const Array<float> device(1, "a test");
  *value = 1;
  stream.upload_pinned(device.data(), pinned.data(), sizeof(float));
  *value = 2;  // too early, as the copy has not begun
  EXPECT_EQ(to_host(stream, device.data(), 1)[0], 2.0f);
}

TEST_F(CudaRuntime, OrdersStreamsByEvents) {
  Stream first, second;
  const Event done;
  const Array<float> values = to_device(first, std::vector<float>{1}, "a test");
  launch_double(first, values);
  first.record(done);
  launch_double(first, values);  // which nobody waits for
  second.wait_for(done);
  launch_double(second, values);
  EXPECT_EQ(to_host(second, values.data(), 1)[0], 4.0f);
}

TEST_F(CudaRuntime, MeasuresTimeBetweenEvents) {
  Stream stream;
  const Event begin(Event::Kind::kTime), end(Event::Kind::kTime), without_time;
  stream.record(begin);
  stream.record(without_time);
  stream.record(end);
  EXPECT_GE(end.seconds_since(begin), 0);
  EXPECT_THROW(end.seconds_since(without_time), DeviceError);
}

TEST_F(CudaRuntime, EndsTheCaptureOfWorkThatFails) {
  Stream stream;
  const Array<float> values = to_device(stream, std::vector<float>{1}, "a test");
  const std::function<void()> broken[] = {[&] { stream.wait(); }, [&] { to_host(stream, values.data(), 1); },
                                          [] { throw DeviceError("something else"); }};
  for (const auto& work : broken) {
    EXPECT_THROW(stream.capture(work), DeviceError);
    launch_double(stream, values);
    stream.wait();  // which it may again
  }
  EXPECT_EQ(to_host(stream, values.data(), 1)[0], 8.0f);
}

TEST_F(CudaRuntime, SaysThatItIsTheMachineWhoseMemoryCannotBeLocked) {
  cudart::fail("cudaMallocHost", cudart::CallError::kMemoryAllocation);
  EXPECT_THAT([] { const PinnedMemory memory(std::size_t{5} << 20); },
              ThrowsMessage<DeviceError>(HasSubstr("cuda: this machine cannot lock 5.0 MiB of its memory")));
}

TEST_F(CudaRuntime, SaysHowMuchMemoryWasAskedForAndForWhat) {
  cudart::start({.memory_bytes = 10 << 20});
  const Memory most(6 << 20, "a test");
  EXPECT_THAT(
      [] { const Memory memory(5 << 20, "a batch of 500"); },
      ThrowsMessage<DeviceError>(AllOf(HasSubstr("cuda: out of memory: 5.0 MiB asked for a batch of 500"),
                                       HasSubstr("4.0 MiB of 10.0 MiB are free"))));
  EXPECT_EQ(free_memory(), std::size_t{4} << 20);
  EXPECT_NO_THROW(const Memory memory(4 << 20, "what fits")) << "the error does not come back";
}

TEST_F(CudaRuntime, ReportsAnyCallThatFailsWithItsPurposeAndOnlyOnce) {
  struct Case {
    const char* function;
    std::function<void(Stream&, const Array<float>&)> work;
    const char* purpose;
  };
  const PinnedMemory pinned(sizeof(float));
  const Event event, time(Event::Kind::kTime);
  const auto capture = [](Stream& stream, const Array<float>& values) {
    return stream.capture([&] { launch_double(stream, values); });
  };
  const Case cases[] = {
      {"cudaStreamBeginCapture", capture, "starting a graph"},
      {"cudaStreamEndCapture", capture, "recording a graph"},
      {"cudaGraphInstantiate", capture, "making a graph"},
      {"cudaGraphUpload", capture, "copying a graph to the device"},
      {"cudaGraphLaunch", [&](auto& stream, auto& values) { stream.launch(capture(stream, values)); },
       "starting a graph"},
      {"cudaMalloc", [](auto&, auto&) { const Memory memory(8, "a test"); }, "allocating memory"},
      {"cudaMallocHost", [](auto&, auto&) { const PinnedMemory memory(8); }, "allocating pinned memory"},
      {"cudaMemGetInfo", [](auto&, auto&) { free_memory(); }, "asking for free memory"},
      {"cudaSetDevice", [](auto&, auto&) { use_device(1); }, "choosing the device"},
      {"cudaStreamCreateWithFlags", [](auto&, auto&) { const Stream other; }, "making a stream"},
      {"cudaEventCreateWithFlags", [](auto&, auto&) { const Event other; }, "making an event"},
      {"cudaEventRecord", [&](auto& stream, auto&) { stream.record(event); }, "recording an event"},
      {"cudaEventSynchronize", [&](auto&, auto&) { event.wait(); }, "waiting for an event"},
      {"cudaEventElapsedTime", [&](auto&, auto&) { time.seconds_since(time); }, "the time between events"},
      {"cudaStreamWaitEvent", [&](auto& stream, auto&) { stream.wait_for(event); }, "waiting for an event"},
      {"cudaStreamSynchronize", [](auto& stream, auto&) { stream.wait(); }, "waiting for the device"},
      {"cudaMemcpyAsync",
       [&](auto& stream, auto& values) { stream.upload_pinned(values.data(), pinned.data(), sizeof(float)); },
       "copying to the device"},
      {"cudaMemcpyAsync",
       [](auto& stream, auto& values) {
         const float value = 1;
         stream.upload(values.data(), &value, sizeof value);
       },
       "copying to the device"},
      {"cudaMemcpyAsync", [](auto& stream, auto& values) { to_host(stream, values.data(), 1); },
       "copying from the device"},
      {"cudaMemcpyAsync",
       [](auto& stream, auto& values) { stream.copy(values.data(), values.data() + 1, sizeof(float)); },
       "copying on the device"},
      {"cudaMemsetAsync", [](auto& stream, auto& values) { stream.clear(values.data(), 4); },
       "clearing memory"},
      {"cudaLaunchKernel", [](auto& stream, auto& values) { launch_double(stream, values); },
       "starting a kernel"},
      {"cudaDeviceGetAttribute", [](auto&, auto&) { shared_bytes_limit(); }, "the size of shared memory"},
  };
  Stream stream;
  const Array<float> values = to_device(stream, std::vector<float>{1, 2}, "a test");
  stream.record(event);
  stream.record(time);
  for (const Case& c : cases) {
    cudart::fail(c.function, cudart::CallError::kOperatingSystem);
    EXPECT_THAT([&] { c.work(stream, values); },
                ThrowsMessage<DeviceError>(AllOf(HasSubstr("cuda: error while "), HasSubstr(c.purpose),
                                                 HasSubstr("(cudaErrorOperatingSystem)"),
                                                 Not(HasSubstr("start it again")))))
        << c.function;
    EXPECT_EQ(cudart::alive().graphs + cudart::alive().executables, 0u) << c.function;
    EXPECT_NO_THROW(stream.wait()) << c.function;
    EXPECT_NO_THROW(c.work(stream, values)) << c.function;
    use_device(0);
  }
}

TEST_F(CudaRuntime, SaysThatTheProcessIsBrokenAfterAKernelFailed) {
  using enum cudart::CallError;
  for (const auto error : {kIllegalAddress, kContained, kTensorMemoryLeak, kMpsClientTerminated, kUnknown}) {
    {
      Stream stream;
      const Array<float> values = to_device(stream, std::vector<float>{1}, "a test");
      cudart::fail_kernel(error, 1);
      launch_double(stream, values);
      launch_double(stream, values);  // the one that fails; it is noticed later
      EXPECT_THAT([&] { stream.wait(); },
                  ThrowsMessage<DeviceError>(AllOf(HasSubstr(std::to_string(static_cast<int>(error))),
                                                   HasSubstr("start it again"))));
      EXPECT_THROW(const Memory memory(8, "a test"), DeviceError);
      EXPECT_THROW(launch_double(stream, values), DeviceError);
      EXPECT_TRUE(cuda_device_is_lost(0));
    }
    cudart::start({});  // The driver takes back what a broken context had.
    EXPECT_FALSE(cuda_device_is_lost(0));
  }
}

TEST_F(CudaRuntime, AsksForSharedMemoryOncePerKernelAndSize) {
  Stream stream;
  const Array<float> values = to_device(stream, std::vector<float>{1}, "a test");
  const auto launch_with = [&](std::size_t bytes) {
    launch(stream, double_kernel, {1}, Block{{32}, bytes}, 1, values.data());
    return cudart::calls("cudaFuncSetAttribute");
  };
  const int before = launch_with(48 << 10);
  EXPECT_EQ(launch_with(100 << 10), before + 1);
  EXPECT_EQ(launch_with(60 << 10), before + 1) << "a graph may still have the kernel with more";
  EXPECT_EQ(launch_with(100 << 10), before + 1);
  EXPECT_THAT([&] { launch_with(228 << 10); },
              ThrowsMessage<DeviceError>(HasSubstr("error while asking for shared memory")));
  EXPECT_EQ(shared_bytes_limit(), std::size_t{227} << 10);
}

TEST_F(CudaRuntime, RefusesALaunchThatTheGpuDoesNotTake) {
  cudart::start({.shared_bytes = std::size_t{99} << 10});
  Stream stream;
  const Array<float> values = to_device(stream, std::vector<float>{1}, "a test");
  EXPECT_THAT([&] { launch(stream, double_kernel, {1}, {{1025}}, 1, values.data()); },
              ThrowsMessage<DeviceError>(HasSubstr("(cudaErrorInvalidConfiguration)")));
  EXPECT_THAT(
      [&] {
        launch(stream, double_kernel, {1}, Block{{32}, 100 << 10}, 1, values.data());
      },
      ThrowsMessage<DeviceError>(HasSubstr("(cudaErrorInvalidValue)")));
}

TEST_F(CudaRuntime, KeepsStreamsToTheirDevices) {
  use_device(1);
  EXPECT_THAT([] { use_device(8); }, ThrowsMessage<DeviceError>(HasSubstr("cuda:1: error while choosing")));
  Stream of_second;
  const Array<float> values = to_device(of_second, std::vector<float>{1}, "a test");
  use_device(0);
  EXPECT_THAT([&] { launch_double(of_second, values); },
              ThrowsMessage<DeviceError>(HasSubstr("(cudaErrorInvalidResourceHandle)")));
  use_device(1);
  launch_double(of_second, values);
  EXPECT_EQ(to_host(of_second, values.data(), 1)[0], 2.0f);
}

TEST_F(CudaRuntime, CopiesBetweenDevicesWithAndWithoutPeerAccess) {
  for (const bool has_peer_access : {true, false}) {
    cudart::start({.has_peer_access = has_peer_access});
    Stream first;
    const Array<float> from = to_device(first, std::vector<float>{5, 6}, "a test");
    use_device(1);
    Stream second;
    const Array<float> to(2, "a test");
    cudart::fail("cudaDeviceEnablePeerAccess", cudart::CallError::kOperatingSystem);
    EXPECT_NO_THROW(reach_device(0)) << "copies work without it";
    reach_device(0);
    reach_device(0);  // which the API calls an error
    reach_device(1);
    second.copy_between(to.data(), 1, from.data(), 0, 2 * sizeof(float));
    EXPECT_EQ(to_host(second, to.data(), 2), (std::vector<float>{5, 6}));
    EXPECT_EQ(cudart::calls("cudaDeviceEnablePeerAccess"), has_peer_access ? 3 : 0);
    cudart::fail("cudaMemcpyPeerAsync", cudart::CallError::kOperatingSystem);
    EXPECT_THAT([&] { second.copy_between(to.data(), 1, from.data(), 0, 4); },
                ThrowsMessage<DeviceError>(HasSubstr("cuda:1: error while copying between devices")));
    cudart::fail("cudaDeviceCanAccessPeer", cudart::CallError::kOperatingSystem);
    EXPECT_THAT([] { reach_device(0); },
                ThrowsMessage<DeviceError>(HasSubstr("error while asking whether devices reach each other")));
    use_device(0);
  }
}

// Whole trainings by way of the CUDA runtime API, and the devices that the program then finds.

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
        devices.size() == 3 && devices[1].capability.empty() && devices[1].device.index == 1 &&
        devices[1].description == "a GPU whose properties cannot be read" && devices[2].capability == "9.0" &&
        devices[2].description == "CUDA stand-in on the host, for tests" && devices[2].device.index == 2 &&
        cuda_device_reason(devices[1]) && devices[2].memory_bytes == std::size_t{4} << 30;
    std::exit(right ? 0 : 1);
  };
  EXPECT_EXIT(check(), testing::ExitedWithCode(0), "");
}

// More than are started at once.
const std::vector<std::size_t> kManySteps = {6, 6, 6, 2, 6, 6, 6, 2, 6, 6, 6, 2, 6, 6, 6, 2, 6, 6, 6, 2};

class EngineOnCudart : public CudaRuntime {
 protected:
  const test::Environment builtin_kernels_{"SWEEP_CUDA_KERNELS", "builtin"};
  const EngineOptions options_ = test::options_with(AdamOptions{});
  const test::Training mlp_ = {test::mlp(), {1, 7, 7}, options_, kManySteps};
};

// Of batches that make more blocks than a small GPU has multiprocessors, and fewer than a large one has.
TEST_F(EngineOnCudart, GivesTheSameBitsOnGpusOfAllSizes) {
  constexpr std::size_t kShared[] = {std::size_t{163} << 10, std::size_t{227} << 10};  // of an A100, an H100
  const std::vector<std::size_t> batches = {150, 40};
  for (const test::Training& training : {test::Training{test::deeplizard(), {1, 28, 28}, options_, batches},
                                         {test::mlp(), {1, 7, 7}, options_, batches},
                                         {test::small_residual(), {2, 9, 8}, options_, batches}}) {
    std::optional<test::EngineOutcome> first;
    for (const int multiprocessors : {16, 80, 132, 264}) {
      for (const std::size_t shared_bytes : kShared) {
        cudart::start({.multiprocessors = multiprocessors, .shared_bytes = shared_bytes});
        const test::EngineOutcome outcome = test::train(training, test::Way{});
        if (!first) first = outcome;
        EXPECT_TRUE(test::same_bits(outcome, *first)) << training.network.name << " on " << multiprocessors
                                                      << " multiprocessors with " << shared_bytes << " bytes";
      }
    }
  }
}

// Whichever call fails, there is an error that says so, and nothing is leaked or used afterwards.
TEST_F(EngineOnCudart, EndsWithAnErrorWhicheverCallFails) {
  for (const std::string function :
       {"cudaMalloc", "cudaMallocHost", "cudaStreamCreateWithFlags", "cudaEventCreateWithFlags",
        "cudaEventRecord", "cudaEventSynchronize", "cudaMemcpyAsync", "cudaMemcpyPeerAsync",
        "cudaMemsetAsync", "cudaStreamSynchronize", "cudaStreamBeginCapture", "cudaStreamEndCapture",
        "cudaGraphInstantiate", "cudaGraphUpload", "cudaGraphLaunch", "cudaLaunchKernel", "cudaSetDevice"}) {
    const bool allocates = function == "cudaMalloc";
    const test::Way way =
        function == "cudaMemcpyPeerAsync" ? test::Way{.stages = 2, .micro_batches = 2} : test::Way{};
    cudart::start({});
    test::train(mlp_, way);
    const int calls = cudart::calls(function);
    ASSERT_GT(calls, 0) << function;
    std::set<int> failing = {0, calls / 2, calls - 1};
    for (int i = 0; allocates && i < calls; ++i) failing.insert(i);
    for (const int i : failing) {
      cudart::start({});
      cudart::fail(function,
                   allocates ? cudart::CallError::kMemoryAllocation : cudart::CallError::kOperatingSystem, i);
      try {
        test::train(mlp_, way);
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
  for (const int kernels_before : {0, 7, 40}) {
    cudart::start({});
    cudart::fail_kernel(cudart::CallError::kLaunchFailure, kernels_before);
    EXPECT_THAT([&] { test::train(mlp_, test::Way{}); },
                ThrowsMessage<DeviceError>(
                    AllOf(HasSubstr("(cudaErrorLaunchFailure)"), HasSubstr("start it again"))));
    cudart::start({});  // The driver takes back what a broken context had.
  }
}

}  // namespace sweep::cuda::runtime_test
