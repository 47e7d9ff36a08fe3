// AccessCount: what it says of layouts whose bank conflicts and sectors are known. This file is compiled as
// watched kernels are.
#include "core/kernels/cuda/host/access_count.h"

#include <gtest/gtest.h>

#include <functional>

#include "core/kernels/cuda/host/warp_request.h"
#include "core/kernels/cuda/runtime/kernel.h"

namespace sweep::cuda {
namespace {

constexpr unsigned kWarps = 2, kBlocks = 3;
constexpr unsigned kBlockThreads = kWarps * host::kWarpLanes;
constexpr unsigned kFloats = 33 * kBlockThreads;  // of shared memory, and of device memory for each block

using Kernel = void (*)(float* values);

host::GridCounts counts_of(Kernel kernel) {
  const Array<float> values(kBlocks * kFloats, "a test");
  host::AccessCount count;
  for (int run = 0; run < 2; ++run) {
    count.restart();
    host::run_grid({kBlocks, 1, 1}, {kBlockThreads, 1, 1}, kFloats * sizeof(float),
                   [&] { kernel(values.data() + blockIdx.x * kFloats); });
  }
  EXPECT_EQ(count.grids().size(), 1u);
  return count.grids().at(0);
}

template <unsigned kStride>
__global__ void read_with_stride(float* values) {
  auto* shared = dynamic_shared<float>();
  shared[threadIdx.x] = 0;
  __syncthreads();
  values[threadIdx.x] = shared[threadIdx.x * kStride];
}

__global__ void read_one_word(float* values) {
  auto* shared = dynamic_shared<float>();
  shared[threadIdx.x] = 0;
  __syncthreads();
  values[threadIdx.x] = shared[threadIdx.x / host::kWarpLanes];
}

__global__ void read_quads(float* values) {
  const float4 quad = dynamic_shared<float4>()[threadIdx.x];
  values[threadIdx.x] = quad.x + quad.y * quad.z * quad.w;
}

// Floats beside each other that are not aligned: nvcc cannot read them at once.
__global__ void read_neighbours(float* values) {
  const float* from = dynamic_shared<float>() + threadIdx.x;
  values[threadIdx.x] = from[0] + from[1] * from[2] * from[3];
}

__global__ void read_device_with_stride(float* values) {
  dynamic_shared<float>()[threadIdx.x] = values[threadIdx.x * 8];
}

__global__ void copy_to_shared(float* values) {
  copy_async(dynamic_shared<float>() + 2 * threadIdx.x, values + threadIdx.x);
  wait_for_copies();
}

// Lane i goes i times round.
__global__ void loop_as_often_as_the_lane(float* values) {
  const auto* shared = dynamic_shared<float>();
  float sum = 0;
  for (unsigned i = 0; i < threadIdx.x % host::kWarpLanes; ++i) sum += shared[i];
  values[threadIdx.x] = sum;
}

__global__ void use_static_memory(float* values) {
  __shared__ float shared[4 * kBlockThreads];
  shared[4 * threadIdx.x] = values[threadIdx.x];
  __syncthreads();
  values[threadIdx.x] = shared[4 * (kBlockThreads - 1 - threadIdx.x)];
}

constexpr std::uint64_t kAllWarps = std::uint64_t{kBlocks} * kWarps;

TEST(AccessCount, FindsAColumnWithTheStrideOfTheBanksThirtyTwofold) {
  const host::GridCounts counts = counts_of(read_with_stride<32>);
  EXPECT_EQ(counts.shared_reads.requests, kAllWarps);
  EXPECT_EQ(counts.shared_reads.factor(), 32);
  EXPECT_EQ(counts.shared_writes.factor(), 1);
}

TEST(AccessCount, FindsTheConflictsOfOtherStrides) {
  EXPECT_EQ(counts_of(read_with_stride<1>).shared_reads.factor(), 1);
  EXPECT_EQ(counts_of(read_with_stride<2>).shared_reads.factor(), 2);
  EXPECT_EQ(counts_of(read_with_stride<12>).shared_reads.factor(), 4);  // lanes eight apart share a bank
  EXPECT_EQ(counts_of(read_with_stride<33>).shared_reads.factor(), 1);
}

TEST(AccessCount, TakesTheSameWordForAllLanesForNoConflict) {
  const host::GridCounts counts = counts_of(read_one_word);
  EXPECT_EQ(counts.shared_reads.cost, kAllWarps);
  EXPECT_EQ(counts.shared_reads.lanes, kAllWarps * host::kWarpLanes);
}

TEST(AccessCount, TakesAlignedQuadsForOneInstruction) {
  const host::GridCounts counts = counts_of(read_quads);
  EXPECT_EQ(counts.shared_reads.requests, kAllWarps);
  EXPECT_EQ(counts.shared_reads.cost, 4 * kAllWarps);
  EXPECT_EQ(counts.shared_reads.factor(), 1);
}

TEST(AccessCount, TakesUnalignedNeighboursForSeveralInstructions) {
  const host::GridCounts counts = counts_of(read_neighbours);
  EXPECT_EQ(counts.shared_reads.requests, 4 * kAllWarps);
  EXPECT_EQ(counts.shared_reads.factor(), 1);
}

TEST(AccessCount, CountsSectorsOfDeviceMemory) {
  const host::GridCounts strided = counts_of(read_device_with_stride), plain = counts_of(read_quads);
  EXPECT_EQ(strided.device_reads.cost, kAllWarps * host::kWarpLanes);
  EXPECT_EQ(strided.device_reads.factor(), 8);
  EXPECT_EQ(plain.device_writes.requests, kAllWarps);
  EXPECT_EQ(plain.device_writes.cost, 4 * kAllWarps);
  EXPECT_EQ(plain.device_reads.requests, 0u);
}

TEST(AccessCount, CountsBothSidesOfACopy) {
  const host::GridCounts counts = counts_of(copy_to_shared);
  EXPECT_EQ(counts.device_reads.cost, 4 * kAllWarps);
  EXPECT_EQ(counts.shared_writes.requests, kAllWarps);
  EXPECT_EQ(counts.shared_writes.factor(), 2);
}

TEST(AccessCount, CountsTheTurnsOfTheBusiestLane) {
  const host::GridCounts counts = counts_of(loop_as_often_as_the_lane);
  EXPECT_EQ(counts.shared_reads.requests, kAllWarps * 31);
  EXPECT_EQ(counts.shared_reads.lanes, kAllWarps * 31 * 32 / 2);
}

TEST(AccessCount, SeesStaticSharedMemory) {
  const host::GridCounts counts = counts_of(use_static_memory);
  EXPECT_EQ(counts.shared_writes.factor(), 4);
  EXPECT_EQ(counts.shared_reads.factor(), 4);
  EXPECT_EQ(counts.shared_reads.requests, kAllWarps);
}

TEST(AccessCount, TellsBarrierIntervalsApart) {
  const host::GridCounts counts = counts_of(use_static_memory);
  ASSERT_EQ(counts.intervals.size(), 2u);
  EXPECT_EQ(counts.intervals[0].longest_device, 1u);
  EXPECT_EQ(counts.intervals[0].longest_shared, 0u);
  EXPECT_EQ(counts.intervals[1].longest_shared, 1u);
  EXPECT_EQ(counts.intervals[1].shared_wavefronts, 4 * kWarps);
}

TEST(WarpRequest, HalvesOfAWarpAccessEightBytesInTurn) {
  host::WarpRequest request{.lanes = ~0u, .bytes = 8};
  for (unsigned lane = 0; lane < host::kWarpLanes; ++lane) request.addresses[lane] = lane * 8;
  EXPECT_EQ(host::shared_wavefronts(request).cost, 2u);
  for (unsigned lane = 0; lane < host::kWarpLanes; ++lane) request.addresses[lane] = lane * 16;
  EXPECT_EQ(host::shared_wavefronts(request).cost, 4u);
  EXPECT_EQ(host::shared_wavefronts(request).ideal, 2u);
  request.lanes = 1u << 20;
  EXPECT_EQ(host::shared_wavefronts(request).cost, 1u);
}

}  // namespace
}  // namespace sweep::cuda
