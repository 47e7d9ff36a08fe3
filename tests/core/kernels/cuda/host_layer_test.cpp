// The engine on the stand-in: what a GPU would not show.

#include "core/engine/engine.h"
#include "core/kernels/cuda/fused_nodes.h"
#include "core/kernels/cuda/kernels/linear.h"
#include "core/kernels/cuda/kernels/optimizer.h"
#include "core/kernels/cuda/kernels/pixel_value.h"
#include "core/kernels/cuda/ops/conv_pool_op.h"
#include "core/kernels/cuda/runtime/divisor.h"
#include "core/kernels/cuda/runtime/memory_plan.h"
#include "tests/core/kernels/cuda/kernels/any_device.h"
#include "tests/cudart/grid.h"
#include "tests/cudart/machine.h"
#include "tests/support/test_networks.h"

namespace sweep::cuda::host_layer_test {

// Numbers of kernels in a training step and in an evaluated batch.
using Kernels = std::pair<int, int>;
Kernels kernels_of(const NetworkSpec& spec, const EngineOptions& options) {
  const Network network(spec, {1, 28, 28});
  const auto engine = make_engine(network, options);
  engine->set_parameters(initial_parameters(network, 3));
  const test::OwnedBatch batch = test::random_batch(options.batch_size, 784, 10, 4);
  const auto run = [&](const std::function<void()>& work) {
    engine->take_totals();
    const int before = cudart::kernels_run();
    work();
    engine->take_totals();
    return cudart::kernels_run() - before;
  };
  return {run([&] { engine->train(batch.view(), 0.1); }), run([&] { engine->evaluate(batch.view()); })};
}

// A launch costs about two microseconds, however small the batch.
TEST(CudaKernels, AreFewInAStep) {
  EngineOptions options{.device = parse_device("cuda"), .batch_size = 10};
  EXPECT_EQ(kernels_of(test::deeplizard(), options), Kernels(3, 1));
  EXPECT_EQ(kernels_of(test::mlp(), options), Kernels(2, 1));
  options.batch_size = 400;
  EXPECT_EQ(kernels_of(test::deeplizard(), options), Kernels(5, 2));
  EXPECT_EQ(kernels_of(test::mlp(), options), Kernels(3, 1));
  options.clip_norm = 1;
  EXPECT_EQ(kernels_of(test::mlp(), options), Kernels(4, 1));
}

TEST(StackStep, IsForSmallBatchesWithoutClipping) {
  Stream stream;
  const std::vector<GradientSource> sources{{nullptr, 0, 1, 1, 1}};
  const auto takes = [&](double clip_norm, std::size_t stack_layers, int images, int slices) {
    return Optimizer(stream, SgdOptions{}, clip_norm, sources, {}, stack_layers).takes_stack(images, slices);
  };
  EXPECT_TRUE(takes(0, 1, 256, 4));
  EXPECT_FALSE(takes(0, 1, 257, 4));
  EXPECT_FALSE(takes(0, 1, 256, 5));
  EXPECT_FALSE(takes(0, 0, 256, 4)) << "no stack";
  EXPECT_FALSE(takes(0.5, 1, 256, 4)) << "the gradient's length has to be known before the step";
}

TEST(PixelValue, OfEveryByteIsTheQuotient) {
  for (std::uint32_t byte = 0; byte < 256; ++byte)
    EXPECT_EQ(BatchSample::value_of(byte, false, 0, {}), static_cast<float>(byte) / 255.0f) << byte;
}

TEST(ConvPool, ForwardLaunchesNoMoreBlocksThanAreResidentAtOnce) {
  constexpr int kImages = 600;
  const ConvPoolShape shape = test::conv_pool_shape(1, {4, 4}, 1, {3, 3}, {0, 0}, false);
  Stream stream;
  const Array<float> in(kImages * 16, "a test"), weight(9, "a test"), out(kImages, "a test");
  const ConvPoolArrays arrays{.weight = weight.data(), .out = out.data()};
  conv_pool_forward(stream, {1, {shape}}, kImages, {.floats = in.data()}, &arrays);
  stream.wait();
  // Four blocks of 192 threads with up to 80 registers fit on each of 132 multiprocessors.
  EXPECT_EQ(cudart::last_grid().x, 528u);
}

TEST(ConvPool, FusesTheDeeplizardConvolutionsAndNothingThatDoesNotFit) {
  const auto fused = [](std::int64_t channels, std::int64_t kernel, const Shape& input, bool input_gradient) {
    const Network network({"n",
                           {test::conv("conv", channels, kernel), test::relu("relu"), test::pool("pool", 2),
                            test::flatten("flatten")}},
                          input);
    return ConvPoolOp::shape_of(network.layers()[0], network.layers()[2], input_gradient).has_value();
  };
  EXPECT_TRUE(fused(6, 5, {1, 28, 28}, false));
  EXPECT_TRUE(fused(12, 5, {6, 12, 12}, true));
  EXPECT_FALSE(fused(64, 3, {64, 12, 12}, false));
  EXPECT_FALSE(fused(4, 8, {1, 28, 28}, false));
  EXPECT_FALSE(fused(1, 1, {3, 2000, 2000}, false));
  EXPECT_EQ(fuse_layers(Network(test::deeplizard(), {1, 28, 28}), {}).nodes[0].conv_pools.size(), 2u);
}

TEST(CudaMemory, ASetThatDoesNotFitStaysOnTheHostUnlessPlacedByTheUser) {
  constexpr std::size_t kSet = std::size_t{1} << 20, kEnough = kSet * 3 / 2, kTooLittle = kSet / 2;
  const auto set = std::make_shared<TensorDataset>(
      TensorDataset{{1, 32, 32}, std::vector<std::uint8_t>(kSet, 7), std::vector<std::int32_t>(1024, 3)});
  const Subset samples{set, 0, 1024};
  const auto engine_with = [](Placement placement) {
    return make_engine(Network(test::mlp(), {1, 32, 32}),
                       {.device = parse_device("cuda"), .batch_size = 5, .placement = placement});
  };
  const auto place = [&](Engine& engine, std::size_t left) {
    const cudart::MemoryLimit limit(left);
    return engine.prepare(samples, {});
  };
  EXPECT_EQ(place(*engine_with(Placement::kAuto), kEnough), Placement::kDevice);
  const auto engine = engine_with(Placement::kAuto);
  EXPECT_EQ(place(*engine, kTooLittle), Placement::kHost);
  EXPECT_EQ(engine->prepare(samples, {}), Placement::kHost) << "the place changes once training has begun";
  const auto late = engine_with(Placement::kAuto);
  cudart::fail("cudaMalloc", cudart::CallError::kMemoryAllocation);
  EXPECT_EQ(place(*late, kEnough), Placement::kHost) << "another process was faster";
  const auto placed = engine_with(Placement::kDevice);
  EXPECT_THAT([&] { place(*placed, kTooLittle); },
              ThrowsMessage<DeviceError>(
                  AllOf(HasSubstr("the data set"), HasSubstr("\"dataset.placement\" \"host\""))));
}

TEST(CudaMemory, IsAskedForAgainAfterABatchThatFoundTooLittle) {
  const auto engine =
      make_engine(Network(test::mlp(), {1, 7, 7}), {.device = parse_device("cuda"), .batch_size = 5});
  const test::OwnedBatch batch = test::random_batch(5, 49, 10, 4);
  {
    const cudart::MemoryLimit no_more(0);
    EXPECT_THROW(engine->train(batch.view(), 0.1), DeviceError);
  }
  engine->train(batch.view(), 0.1);
  EXPECT_EQ(engine->take_totals().samples, 5);
}

TEST(CudaEngine, RefusesWhatItsKernelsCannotIndex) {
  const auto reason = [](std::size_t batch_size, std::int64_t features) {
    const Network network({"wide", {test::linear("out", features)}}, {100'000});
    return test::message_of<ConfigError>(
        [&] { make_engine(network, {.device = parse_device("cuda"), .batch_size = batch_size}); });
  };
  EXPECT_THAT(reason(20'000, 10), HasSubstr("a batch of its input has 100000 values for each sample"));
  EXPECT_EQ(reason(1, 30'000),
            "network \"wide\" is too large for CUDA: got 3000030000 parameters, want at most "
            "2147418112");
}

TEST(Linear, TakesMoreImagesThanAGridHasTilesDown) {
  constexpr int kImages = 65535 * 64 + 1;
  Stream stream;
  std::vector<float> values(kImages);
  for (int i = 0; i < kImages; ++i) values[static_cast<std::size_t>(i)] = static_cast<float>(i % 1000);
  std::vector<float> tripled = values;
  for (float& value : tripled) value *= 3;
  const Array<float> in = to_device(stream, values, "a test"),
                     weight = to_device(stream, std::vector{3.0f}, "a test"), out(values.size(), "a test");
  const LinearShape shape{1, 1, false};
  linear_forward(stream, shape, kImages, in.data(), weight.data(), nullptr, false, out.data());
  EXPECT_TRUE(to_host(stream, out.data(), out.size()) == tripled);
  stream.clear(out.data(), values.size() * sizeof(float));
  linear_backward_input(stream, shape, kImages, in.data(), weight.data(), false, out.data());
  EXPECT_TRUE(to_host(stream, out.data(), out.size()) == tripled);
}

TEST(MemoryPlan, ArraysThatAreAliveTogetherNeverOverlap) {
  RandomStream random(1, RandomUse::kShuffle);
  for (int round = 0; round < 300; ++round) {
    struct Request {
      std::size_t bytes;
      int first, last;
      Slot slot;
    };
    std::vector<Request> requests(1 + random.below(25));
    MemoryPlan plan;
    for (Request& r : requests) {
      r.bytes = random.below(5000);
      r.first = static_cast<int>(random.below(20));
      r.last = r.first + static_cast<int>(random.below(10));
      r.slot = plan.add(r.bytes, r.first, r.last);
    }
    const std::size_t total = plan.solve();
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const Request& a = requests[i];
      ASSERT_EQ(plan.offset(a.slot) % 256, 0u);
      ASSERT_LE(plan.offset(a.slot) + a.bytes, total);
      for (std::size_t j = 0; j < i; ++j) {
        const Request& b = requests[j];
        if (a.first > b.last || b.first > a.last) continue;
        ASSERT_TRUE(plan.offset(a.slot) + a.bytes <= plan.offset(b.slot) ||
                    plan.offset(b.slot) + b.bytes <= plan.offset(a.slot));
      }
    }
  }
}

TEST(MemoryPlan, ArraysOfABatchInPartsShareMemoryOnlyIfNoPartLeavesThemToAnother) {
  MemoryPlan plan(true);
  const Slot first = plan.add_rows(4, 100, 0, 1), second = plan.add_rows(4, 100, 2, 3);
  const Slot scratch = plan.add(300, 0, 0), other = plan.add(200, 2, 2);
  EXPECT_EQ(plan.solve(), 3 * 512u);
  EXPECT_NE(plan.offset(first), plan.offset(second));
  EXPECT_EQ(plan.offset(scratch), plan.offset(other));
  EXPECT_EQ(plan.row_bytes(first), 100u);
  EXPECT_EQ(plan.row_bytes(scratch), 0u);
}

TEST(MemoryPlan, ArraysThatFollowEachOtherShareMemory) {
  MemoryPlan plan;
  plan.add(1024, 0, 1);
  plan.add(512, 2, 3);
  plan.add(512, 2, 3);
  plan.add(1024, 4, 4);
  EXPECT_EQ(plan.solve(), 1024u);
}

TEST(Divisor, DividesAsTheProcessorDoes) {
  RandomStream random(2, RandomUse::kShuffle);
  constexpr int kLargest = 0x7FFFFFFF;
  const auto check = [](int n, int d) {
    const Divisor::Result result = Divisor(d).divide(n);
    ASSERT_EQ(result.quotient, n / d) << n << " / " << d;
    ASSERT_EQ(result.remainder, n % d);
  };
  for (int d = 1; d < 2000; ++d) {
    for (const int n :
         {0, 1, d - 1, d, d + 1, kLargest / d * d - 1, kLargest / d * d, kLargest - 1, kLargest})
      check(n, d);
  }
  for (int i = 0; i < 200000; ++i) {
    const auto d = static_cast<int>((1 + random.next_u32() % kLargest) >> random.below(31));
    check(static_cast<int>(random.next_u32() >> 1), d > 0 ? d : 1);
  }
  check(kLargest, kLargest);
  check(kLargest, 1 << 30);
}

}  // namespace sweep::cuda::host_layer_test
