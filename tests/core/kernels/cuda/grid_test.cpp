// Grids on the host: orders of threads and blocks, shared memory and copies to it, and what is refused as a
// GPU would.

#include <cuda_runtime.h>
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif
#include "core/kernels/cuda/runtime/kernel.h"
#include "tests/core/kernels/cuda/kernels/any_device.h"
#include "tests/cudart/fiber.h"

namespace sweep::cuda::grid_test {

TEST(RunGrid, AMissingBarrierMakesTheResultDependOnTheOrder) {
  std::vector<std::vector<unsigned>> results;
  test::in_every_order([&] {
    std::vector<unsigned> shared(8), read(8);
    cudart::run_grid({1, 1, 1}, {8, 1, 1}, 0, [&] {
      shared[threadIdx.x] = threadIdx.x + 1;
      read[threadIdx.x] = shared[(threadIdx.x + 1) % 8];
    });
    results.push_back(read);
  });
  EXPECT_NE(results[0], results[1]);
}

TEST(RunGrid, AThreadThatLeavesBeforeABarrierIsAnError) {
  const auto kernel = [] {
    __syncthreads();
    if (threadIdx.x == 3) return;
    __syncthreads();
  };
  EXPECT_THROW(cudart::run_grid({1, 1, 1}, {8, 1, 1}, 0, kernel), std::logic_error);
  int threads = 0;
  cudart::run_grid({1, 1, 1}, {8, 1, 1}, 0, [&] {  // and the next kernel runs as ever
    __syncthreads();
    ++threads;
  });
  EXPECT_EQ(threads, 8);
}

TEST(RunGrid, RefusesWhatNoGpuTakes) {
  const auto run = [](cudart::Index3 grid, cudart::Index3 block, std::size_t bytes) {
    return [=] { cudart::run_grid(grid, block, bytes, [] {}); };
  };
  EXPECT_THAT(run({1, 65536, 1}, {1, 1, 1}, 0),
              ThrowsMessage<std::logic_error>(HasSubstr("65536 blocks along y, want at most 65535")));
  EXPECT_THAT(run({1, 1, 65536}, {1, 1, 1}, 0), ThrowsMessage<std::logic_error>(HasSubstr("along z")));
  EXPECT_THAT(run({1, 1, 1}, {512, 3, 1}, 0),
              ThrowsMessage<std::logic_error>(HasSubstr("1536 threads in a block")));
  EXPECT_THAT(run({1, 1, 1}, {1, 1, 65}, 0), ThrowsMessage<std::logic_error>(HasSubstr("threads along z")));
  EXPECT_THAT(run({1, 1, 1}, {1, 1, 1}, 232449),
              ThrowsMessage<std::logic_error>(HasSubstr("bytes of shared memory")));
  EXPECT_NO_THROW(run({2, 2, 2}, {16, 1, 64}, 232448)());
}

TEST(RunGrid, FillsSharedMemoryWithNansForEveryBlock) {
  int nans = 0;
  cudart::run_grid({5, 1, 1}, {1, 1, 1}, sizeof(float), [&] {
    nans += std::isnan(*dynamic_shared<float>()) ? 1 : 0;
    *dynamic_shared<float>() = 1;
  });
  EXPECT_EQ(nans, 5);
}

TEST(RunGrid, TakesAnotherOrderForEverySeedAndBlock) {
  const auto orders = [](std::uint64_t seed) {
    cudart::set_order(cudart::Order::kRandom, seed);
    std::map<unsigned, std::vector<unsigned>> of_block;
    cudart::run_grid({20, 1, 1}, {8, 1, 1}, 0, [&] {
      __syncthreads();
      of_block[blockIdx.x].push_back(threadIdx.x);
    });
    cudart::set_order(cudart::Order::kForward);
    return of_block;
  };
  const auto one = orders(1);
  EXPECT_NE(one, orders(2));
  EXPECT_NE(one.at(0), one.at(1));
  for (const auto& [block, threads] : one) EXPECT_EQ(std::set(threads.begin(), threads.end()).size(), 8u);
}

TEST(CopyAsync, ArrivesWhenItsThreadWaitsAndNotBefore) {
  const float global = 3;
  float before = 0, after = 0;
  const auto kernel = [&](bool waits) {
    copy_async(dynamic_shared<float>(), &global);
    before = *dynamic_shared<float>();
    if (waits) wait_for_copies();
    after = *dynamic_shared<float>();
  };
  cudart::run_grid({1, 1, 1}, {1, 1, 1}, sizeof(float), [&] { kernel(true); });
  EXPECT_TRUE(std::isnan(before));
  EXPECT_EQ(after, 3.0f);
  EXPECT_THAT(
      [&] {
        cudart::run_grid({1, 1, 1}, {1, 1, 1}, sizeof(float), [&] { kernel(false); });
      },
      ThrowsMessage<std::logic_error>(HasSubstr("without waiting for its copy_async()")));
}

TEST(CopyAsync, BringsFourFloatsToAlignedAddressesOnly) {
  const float4 global[2] = {{1, 2, 3, 4}, {5, 6, 7, 8}};
  std::vector<float> arrived;
  const auto run = [&](int offset) {
    cudart::run_grid({1, 1, 1}, {1, 1, 1}, 2 * sizeof(float4), [&] {
      auto* shared = dynamic_shared<float>();
      copy_async(reinterpret_cast<float4*>(shared + offset), &global[1]);
      wait_for_copies();
      arrived.assign(shared + offset, shared + offset + 4);
    });
  };
  run(4);
  EXPECT_THAT(arrived, ElementsAre(5, 6, 7, 8));
  EXPECT_THAT([&] { run(1); }, ThrowsMessage<std::logic_error>(HasSubstr("copies 16 bytes at an address")));
}

#if defined(__SANITIZE_ADDRESS__)
TEST(Fiber, LeavesNoMarksOfAddressSanitizerBehind) {
  char* frame = nullptr;
  {
    cudart::Fiber thread, *self = nullptr;
    cudart::Fiber fiber([&] {
      char local[100] = "on the fiber's stack";
      frame = local;
      self->switch_to(thread);
      ADD_FAILURE() << "resumed, with " << local;
    });
    self = &fiber;
    thread.switch_to(fiber);
    EXPECT_NE(__asan_region_is_poisoned(frame, 200), nullptr) << "expects marks behind a local array";
  }
  EXPECT_EQ(__asan_region_is_poisoned(frame, 200), nullptr);
}
#endif

__global__ void clear_kernel(float* value) { *value = 0; }

TEST(Launch, TellsOfMemoryThatIsElsewhereOrFreed) {
  {
    use_device(1);
    Stream second;
    const Array<float> of_second(1, "a test");
    use_device(0);
    Stream first;
    const PinnedMemory pinned(sizeof(float));
    const auto clear = [&](float* value) { launch(first, clear_kernel, {1}, {{1}}, value); };
    EXPECT_THROW(clear(of_second.data()), DeviceError);
    EXPECT_THROW(clear(reinterpret_cast<float*>(pinned.data())), DeviceError);
    Graph graph;
    {
      const Array<float> of_first(1, "a test");
      graph = first.capture([&] { clear(of_first.data()); });
      second.copy_between(of_second.data(), 1, of_first.data(), 0, sizeof(float));
    }
    first.launch(graph);
    first.wait();
  }
  const std::string elsewhere = "a kernel gets memory that is not its device's";
  EXPECT_THAT(cudart::mistakes(), ElementsAre(elsewhere, elsewhere, "a kernel whose memory is freed",
                                              "a copy whose memory is freed"));
  cudart::start({});
}

struct PaddedParameter {
  std::uint32_t number;  // and padding
  float* value;
};
__global__ void clear_padded_kernel(PaddedParameter parameter) { *parameter.value = 0; }

TEST(Launch, TakesNoNumberWithItsPaddingForAnAddress) {
  use_device(1);
  const Array<float> of_second(1, "a test");
  use_device(0);
  Stream stream;
  const Array<float> of_first(1, "a test");
  PaddedParameter parameter{0, of_first.data()};
  const float* const elsewhere = of_second.data();
  std::memcpy(&parameter, &elsewhere, sizeof elsewhere);
  launch(stream, clear_padded_kernel, {1}, {{1}}, parameter);
  stream.wait();
  EXPECT_THAT(cudart::mistakes(), IsEmpty());
}

}  // namespace sweep::cuda::grid_test
