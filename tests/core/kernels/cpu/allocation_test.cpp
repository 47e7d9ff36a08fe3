// The training loop allocates no memory after its first epoch. This test replaces malloc itself,
// so it is a separate program.

#include "core/engine/engine.h"
#include "core/parallel/communicator.h"
#include "core/parallel/replicated_engine.h"
#include "tests/core/parallel/forwarding_communicator.h"
#include "tests/support/test_networks.h"

static std::atomic<long> allocations{0};

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
constexpr bool kCountsAllocations = true;

extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* old, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);

void* malloc(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(count, size);
}
void* realloc(void* old, std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_realloc(old, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, size);
}
}
#else
constexpr bool kCountsAllocations = false;
#endif

namespace sweep::allocation_test {

// Sees to it that ranks pass each other everything, as processes do.
class Apart final : public test::ForwardingCommunicator {
 public:
  using ForwardingCommunicator::ForwardingCommunicator;
  bool shares_memory() const override { return false; }
};

// Allocations of the second epoch with this engine: batches of 64, the last of 52.
long allocations_of_an_epoch(Engine& engine, const Network& network) {
  const Subset samples{test::random_set(500, network.input(), 10, 1), 0, 500};
  engine.set_parameters(initial_parameters(network, 1));
  DataLoader loader(samples, {.batch_size = 64, .shuffle = true});
  const auto epoch = [&] {
    while (const Batch* batch = loader.next()) {
      engine.train(*batch, 0.001);
      engine.take_totals();
      engine.evaluate(*batch);
    }
  };
  loader.begin_epoch(0);
  epoch();  // The first steps may allocate.
  loader.begin_epoch(1);
  const long before = allocations.load();
  epoch();
  return allocations.load() - before;
}

EngineOptions training_options() {
  return {.threads = 2, .batch_size = 64, .optimizer = AdamOptions{}, .clip_norm = 1};
}

struct Case {
  const char* name;
  NetworkSpec network;
  Shape input;
};

class NoAllocation : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (!kCountsAllocations) GTEST_SKIP() << "allocations are counted with glibc and without sanitizers only";
    const long before = allocations.load();
    const std::vector<float> proof(1000);
    EXPECT_GT(allocations.load(), before) << "none is counted at all";
  }

  const Network network_{GetParam().network, GetParam().input};
};

TEST_P(NoAllocation, InTheTrainingLoop) {
  const auto engine = make_engine(network_, training_options());
  EXPECT_EQ(allocations_of_an_epoch(*engine, network_), 0);
}

// Of no rank: all are threads of this process.
TEST_P(NoAllocation, WhereRanksShareTheBatches) {
  constexpr int kRanks = 3;
  EngineOptions options = training_options();
  options.parallel.data = kRanks;
  options.accumulation_steps = 2;
  const auto together = make_engine(network_, options);
  EXPECT_EQ(allocations_of_an_epoch(*together, network_), 0) << "threads of one engine";

  const auto ends = make_thread_group(kRanks);
  std::vector<std::unique_ptr<Apart>> ranks;
  for (const auto& end : ends) ranks.push_back(std::make_unique<Apart>(*end));
  std::vector<std::thread> others;
  for (int rank = 1; rank < kRanks; ++rank)
    others.emplace_back([&ranks, rank] { serve_replicas(*ranks[static_cast<std::size_t>(rank)]); });
  {
    const auto engine = make_engine_on(*ranks[0], network_, options);
    EXPECT_EQ(allocations_of_an_epoch(*engine, network_), 0) << "ranks that send each other the batches";
  }
  end_replicas(*ranks[0], 0);
  for (std::thread& other : others) other.join();
}

// The last has enough channels for Winograd's algorithm.
INSTANTIATE_TEST_SUITE_P(Networks, NoAllocation,
                         testing::Values(Case{"deeplizard", test::deeplizard(), {1, 28, 28}},
                                         Case{"residual", test::small_residual(), {3, 8, 8}},
                                         Case{"wide_residual", test::small_residual(16), {3, 16, 16}}),
                         [](const auto& instance) { return std::string(instance.param.name); });

}  // namespace sweep::allocation_test
