// Kernels that start while the previous one still runs: what they load before they wait is what was there
// then. On the host they start as early as a GPU may let them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include <cuda_runtime.h>
#include "core/kernels/cuda/kernels/linear_stack.h"
#include "core/kernels/cuda/kernels/optimizer.h"
#include "core/kernels/cuda/runtime/kernel.h"
#include "tests/cudart/machine.h"
#include "tests/support/environment.h"

namespace sweep::cuda {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr unsigned kBlocks = 3, kWidth = 32;
constexpr int kCount = kBlocks * kWidth;

__device__ int index_in_grid() { return static_cast<int>(blockIdx.x * kWidth + threadIdx.x); }

// Adds one to every value.
struct Increase {
  static constexpr unsigned kMaxThreads = kWidth;
  float* values;
  __device__ void operator()() const { values[index_in_grid()] += 1; }
};

// Writes values + 1 to `sums`; reads the values before or after its wait.
struct IncreaseFrom {
  static constexpr unsigned kMaxThreads = kWidth;
  const float* values;
  float* sums;
  bool early, by_copy;

  template <Load kLoad>
  __device__ void load() const {
    auto* shared = dynamic_shared<float>();
    if (by_copy) {
      copy_async<kLoad>(&shared[threadIdx.x], &values[index_in_grid()]);
    } else {
      shared[threadIdx.x] = values[index_in_grid()];
    }
  }
  __device__ void load_early() const {
    if (early) load<Load::kEarly>();
  }
  __device__ void operator()() const {
    if (!early) load<Load::kLate>();
    const float before = dynamic_shared<float>()[threadIdx.x];
    wait_for_copies();
    sums[index_in_grid()] = dynamic_shared<float>()[threadIdx.x] + 1;
    if (by_copy && !std::isnan(before)) sums[index_in_grid()] = -1;  // a copy has arrived too early
  }
};

constexpr Block kBlock{{kWidth}, kWidth * sizeof(float)};

Array<float> zeros(Stream& stream) { return to_device(stream, std::vector<float>(kCount), "values"); }

TEST(KernelOverlap, WhatIsLoadedTooEarlyIsOldInEveryThreadOfEveryBlock) {
  for (const bool by_copy : {false, true}) {
    Stream stream;
    const Array<float> values = zeros(stream), late = zeros(stream), early = zeros(stream);
    launch_functor(stream, Increase{values.data()}, {kBlocks}, {{kWidth}});
    launch_functor(stream, IncreaseFrom{values.data(), late.data(), false, by_copy}, {kBlocks}, kBlock);
    launch_functor(stream, Increase{values.data()}, {kBlocks}, {{kWidth}});
    launch_functor(stream, IncreaseFrom{values.data(), early.data(), true, by_copy}, {kBlocks}, kBlock);
    EXPECT_THAT(to_host(stream, late.data(), kCount), Each(2.0f));
    EXPECT_THAT(to_host(stream, early.data(), kCount), Each(2.0f)) << "3 without the mistake";
  }
}

// Copies before its wait as if nobody had written the values while its multiprocessor was busy.
struct IncreaseFromCache : IncreaseFrom {
  __device__ void load_early() const { load<Load::kLate>(); }
};

TEST(KernelOverlap, AnEarlyCopyThroughTheCacheIsAnError) {
  Stream stream;
  const Array<float> values = zeros(stream), sums = zeros(stream);
  launch_functor(stream, Increase{values.data()}, {kBlocks}, {{kWidth}});
  launch_functor(stream, IncreaseFromCache{{values.data(), sums.data(), true, true}}, {kBlocks}, kBlock);
  EXPECT_THAT([&] { stream.wait(); }, ThrowsMessage<std::logic_error>(HasSubstr("L1 cache")));
}

TEST(KernelOverlap, EveryKernelOfARowStartsBeforeTheOneInFrontOfItIsDone) {
  constexpr int kKernels = 4;
  for (const bool is_graph : {false, true}) {
    Stream stream;
    std::vector<Array<float>> sums;
    for (int i = 0; i <= kKernels; ++i) sums.push_back(zeros(stream));
    const auto launch_row = [&] {
      for (std::size_t i = 0; i < kKernels; ++i)
        launch_functor(stream, IncreaseFrom{sums[i].data(), sums[i + 1].data(), true, true}, {kBlocks},
                       kBlock);
    };
    const int before = cudart::kernels_overlapped();
    if (is_graph) {
      stream.launch(stream.capture(launch_row));
    } else {
      launch_row();
    }
    std::vector<float> last;
    last.reserve(sums.size());
    for (const Array<float>& sum : sums) last.push_back(to_host(stream, sum.data(), kCount).back());
    EXPECT_THAT(last, ElementsAre(0, 1, 1, 1, 1)) << "each has read what was there before its neighbour ran";
    EXPECT_EQ(cudart::kernels_overlapped() - before, kKernels - 1);
  }
}

TEST(KernelOverlap, IsNoneWithoutAKernelInFrontOrIfNobodyWantsIt) {
  const auto sum_behind = [](const auto& work) {
    Stream stream;
    const Array<float> values = zeros(stream), sums = zeros(stream);
    launch_functor(stream, Increase{values.data()}, {kBlocks}, {{kWidth}});
    work(stream);
    launch_functor(stream, IncreaseFrom{values.data(), sums.data(), true, false}, {kBlocks}, kBlock);
    return to_host(stream, sums.data(), kCount)[0];
  };
  const Event event;
  EXPECT_EQ(sum_behind([](Stream&) {}), 1.0f);
  EXPECT_EQ(sum_behind([&](Stream& stream) { stream.record(event); }), 2.0f);
  EXPECT_EQ(sum_behind([&](Stream& stream) { stream.wait_for(event); }), 2.0f);
  const Array<float> other(1, "another array");
  EXPECT_EQ(sum_behind([&](Stream& stream) { stream.clear(other.data(), sizeof(float)); }), 2.0f);
  // Its kernel is not on the stream.
  EXPECT_EQ(sum_behind([&](Stream& stream) {
              stream.capture([&] { launch_functor(stream, Increase{other.data()}, {1}, {{kWidth}}); });
            }),
            2.0f);
  const test::Environment variable("SWEEP_CUDA_OVERLAP", "0");
  EXPECT_EQ(sum_behind([](Stream&) {}), 2.0f);
}

// Adds one to every weight, as an optimizer does.
struct IncreaseWeights {
  static constexpr unsigned kMaxThreads = kWidth;
  int count;
  float* weights;
  __device__ void operator()() const {
    for_each_index(count, [this](int i) { weights[i] += 1; });
  }
};

// The output of a layer whose weights a kernel increases from 0 to 1, for the input 1, 1, 1, 1.
float output_behind(Changes changes) {
  Stream stream;
  const Array<float> in = to_device(stream, std::vector<float>(4, 1), "the input"),
                     weights = to_device(stream, std::vector<float>(4), "the weights"), out(1, "the output");
  LinearStackShape shape{.count = 1, .layers = {{.inputs = 4, .outputs = 1}}};
  LinearStackArrays arrays;
  arrays.layers[0] = {.weight = weights.data(), .out = out.data()};
  arrays.in = in.data();
  launch_functor(stream, IncreaseWeights{4, weights.data()}, {1}, {{kWidth}}, changes);
  linear_stack(stream, shape, arrays, {.images = 1});
  return to_host(stream, out.data(), 1)[0];
}

TEST(KernelOverlap, AKernelThatDoesNotSayThatItChangesParametersIsFound) {
  EXPECT_EQ(output_behind(Changes::kParameters), 4.0f);
  EXPECT_EQ(output_behind(Changes::kResults), 0.0f) << "weights loaded before the kernel had changed them";
}

// A step behind a step, with nothing in between that computes new gradients.
TEST(KernelOverlap, AnOptimizerBehindItselfLoadsItsStateLate) {
  constexpr int kParameters = 5;
  const auto run = [&](const char* overlap) {
    const test::Environment variable("SWEEP_CUDA_OVERLAP", overlap);
    Stream stream;
    const auto filled = [&](float value) {
      return to_device(stream, std::vector<float>(kParameters, value), "a test");
    };
    const Array<float> parameters = filled(1), gradient = filled(0), mean = filled(0), square = filled(0),
                       part = filled(0.5);
    const Array<StepInput> input =
        to_device(stream, std::vector{StepInput{.factors = step_factors(AdamOptions{}, 0.1, 3)}}, "a test");
    const Optimizer optimizer(stream, AdamOptions{}, 0, {{part.data(), 0, kParameters, 1, kParameters}},
                              {parameters.data(), gradient.data(), {mean.data(), square.data()}});
    for (int step = 0; step < 3; ++step) optimizer.step(stream, input.data());
    return to_host(stream, parameters.data(), kParameters);
  };
  EXPECT_EQ(run(nullptr), run("0"));
}

}  // namespace
}  // namespace sweep::cuda
