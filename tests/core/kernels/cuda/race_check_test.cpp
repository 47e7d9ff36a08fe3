// RaceCheck: that it finds faults put into kernels on purpose, in whatever order threads and blocks run, and
// nothing in kernels without. This file is compiled as watched kernels are.
#include "tests/cudart/race_check.h"

#include "core/kernels/cuda/runtime/kernel.h"
#include "tests/support/test.h"

namespace sweep::cuda::race_check_test {

constexpr unsigned kBlocks = 3;
constexpr unsigned kSharedBytes = kThreads * sizeof(float);

using Kernel = void (*)(float* values, std::uint32_t* counter);

std::vector<std::string> races_of(Kernel kernel, cudart::Order order) {
  std::vector<float> values(kBlocks * kThreads + 1, 1.0f);
  std::uint32_t counter = 0;
  cudart::set_order(order, 5);
  std::vector<std::string> races;
  {
    const cudart::RaceCheck check;
    cudart::run_grid({kBlocks, 1, 1}, {kThreads, 1, 1}, kSharedBytes,
                     [&] { kernel(values.data(), &counter); });
    races = check.races();
    EXPECT_GT(check.accesses(), 0u);
  }
  cudart::set_order(cudart::Order::kForward);
  return races;
}

__device__ unsigned index_in_grid() { return blockIdx.x * blockDim.x + threadIdx.x; }

// Turns the values of a block round, through shared memory.
__global__ void turn_round(float* values, std::uint32_t*) {
  __shared__ float shared[kThreads];
  shared[threadIdx.x] = values[index_in_grid()];
  __syncthreads();
  values[index_in_grid()] = shared[kThreads - 1 - threadIdx.x];
}

__global__ void turn_round_without_barrier(float* values, std::uint32_t*) {
  __shared__ float shared[kThreads];
  shared[threadIdx.x] = values[index_in_grid()];
  values[index_in_grid()] = shared[kThreads - 1 - threadIdx.x];
}

__global__ void turn_round_in_dynamic_memory_without_barrier(float* values, std::uint32_t*) {
  auto* shared = dynamic_shared<float>();
  shared[threadIdx.x] = values[index_in_grid()];
  values[index_in_grid()] = shared[kThreads - 1 - threadIdx.x];
}

// The second use of the array may begin while others still read the first.
__global__ void use_shared_memory_again_without_barrier(float* values, std::uint32_t*) {
  __shared__ float shared[kThreads];
  shared[threadIdx.x] = values[index_in_grid()];
  __syncthreads();
  const float turned = shared[kThreads - 1 - threadIdx.x];
  shared[threadIdx.x] = 2 * turned;
  __syncthreads();
  values[index_in_grid()] = shared[threadIdx.x];
}

__global__ void read_the_next_block(float* values, std::uint32_t*) {
  const float next = values[(index_in_grid() + kThreads) % (kBlocks * kThreads)];
  __syncthreads();
  values[index_in_grid()] = next;
}

__global__ void write_one_value_in_all_blocks(float* values, std::uint32_t*) {
  if (threadIdx.x == 0) values[kBlocks * kThreads] = static_cast<float>(blockIdx.x);
}

__global__ void count_atomically(float*, std::uint32_t* counter) { add_atomically(counter, 1); }

__global__ void count_plainly(float*, std::uint32_t* counter) {
  if (threadIdx.x == 0) *counter += 1;
}

__global__ void read_what_the_first_block_wrote(float* values, std::uint32_t*) {
  __shared__ float shared[kThreads];
  if (blockIdx.x == 0) shared[threadIdx.x] = 7;
  if (blockIdx.x == 2) values[index_in_grid()] = shared[threadIdx.x];
}

__global__ void copy_and_wait(float* values, std::uint32_t*) {
  auto* shared = dynamic_shared<float>();
  copy_async(&shared[threadIdx.x], &values[index_in_grid()]);
  wait_for_copies();
  __syncthreads();
  values[index_in_grid()] = shared[kThreads - 1 - threadIdx.x];
}

__global__ void copy_without_barrier(float* values, std::uint32_t*) {
  auto* shared = dynamic_shared<float>();
  copy_async(&shared[threadIdx.x], &values[index_in_grid()]);
  wait_for_copies();
  values[index_in_grid()] = shared[kThreads - 1 - threadIdx.x];
}

// Bytes beside each other are no race, and neither are locals whose address a function takes.
__global__ void write_neighbouring_bytes(float* values, std::uint32_t*) {
  volatile unsigned char local[4] = {1, 2, 3, 4};
  reinterpret_cast<unsigned char*>(values)[index_in_grid()] = local[threadIdx.x % 4];
}

TEST(RaceCheck, FindsTheRacesOfEachKernelAndNoOthers) {
  const struct {
    Kernel kernel;
    const char* race;
  } kernels[] = {
      {turn_round, nullptr},
      {count_atomically, nullptr},
      {copy_and_wait, nullptr},
      {write_neighbouring_bytes, nullptr},
      {turn_round_without_barrier, "shared memory"},
      {turn_round_in_dynamic_memory_without_barrier, "shared memory"},
      {copy_without_barrier, "shared memory"},
      {use_shared_memory_again_without_barrier, "writes shared memory that"},
      {read_the_next_block, "device memory"},
      {write_one_value_in_all_blocks, "of block"},
      {count_plainly, "device memory"},
  };
  for (const auto& [kernel, race] : kernels) {
    for (const cudart::Order order :
         {cudart::Order::kForward, cudart::Order::kBackward, cudart::Order::kRandom}) {
      SCOPED_TRACE(race != nullptr ? race : "no race");
      if (race == nullptr) {
        EXPECT_THAT(races_of(kernel, order), IsEmpty());
      } else {
        EXPECT_THAT(races_of(kernel, order), Contains(HasSubstr(race)));
      }
    }
  }
  EXPECT_THAT(races_of(read_what_the_first_block_wrote, cudart::Order::kForward),
              ElementsAre(HasSubstr("nobody of its own block")));
}

TEST(RaceCheck, SeesEachKernelAlone) {
  std::vector<float> values(kThreads, 1.0f);
  const cudart::RaceCheck check;
  for (int kernel = 0; kernel < 2; ++kernel) {
    cudart::run_grid({1, 1, 1}, {kThreads, 1, 1}, 0, [&] {
      values[kernel == 0 ? threadIdx.x : kThreads - 1 - threadIdx.x] += 1;  // after each other on a stream
    });
  }
  EXPECT_THAT(check.races(), IsEmpty());
}

}  // namespace sweep::cuda::race_check_test
