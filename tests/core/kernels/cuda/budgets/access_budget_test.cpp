// How many bank conflicts the layouts in shared memory cause, and how much of device memory is fetched in
// vain: each kernel of deeplizard's network and of an MLP is held to a budget. Above 1 they are what the
// kernels take, so that nobody adds to it unseen.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <regex>
#include <string>

#include "tests/core/kernels/cuda/budgets/counted_step.h"
#include "tests/support/test_networks.h"

namespace sweep::cuda {
namespace {

// Wavefronts or sectors per ideal one, at most; see RequestTotals::factor().
struct Budget {
  const char* kernel;  // a pattern for all of its name; the first that matches counts
  double shared_reads, shared_writes, device_reads, device_writes;
};

constexpr Budget kBudgets[] = {
    {"functor_kernel<ForwardKernel>", 1.05, 1.4, 1.25, 1.4},
    {"functor_kernel<BackwardKernel<.*> >", 1.35, 2.7, 1.2, 4.4},
    {"functor_kernel<StackKernel>", 1.2, 1.1, 1.05, 1.3},
    {"functor_kernel<ProductsKernel<.*> >", 1, 1.35, 1.35, 1.5},
    {".*", 1.2, 1.2, 1.35, 1.3},
};

const Budget& budget_of(const std::string& kernel) {
  return *std::find_if(std::begin(kBudgets), std::end(kBudgets), [&](const Budget& candidate) {
    return std::regex_match(kernel, std::regex(candidate.kernel));
  });
}

void expect_within_budget(const NetworkSpec& spec, std::size_t images) {
  const Network network(spec, {1, 28, 28});
  constexpr std::uint64_t kMostAccesses = 4'000'000;
  std::map<std::string, host::GridCounts> kernels;
  for (const CountedGrid& grid : count_step(network, images, kMostAccesses)) {
    host::GridCounts& all = kernels[grid.kernel];
    all.shared_reads += grid.counts.shared_reads;
    all.shared_writes += grid.counts.shared_writes;
    all.device_reads += grid.counts.device_reads;
    all.device_writes += grid.counts.device_writes;
  }
  EXPECT_GE(kernels.size(), 2u);
  for (const auto& [name, counts] : kernels) {
    SCOPED_TRACE(name + " with " + std::to_string(images) + " images");
    const Budget& budget = budget_of(name);
    EXPECT_LE(counts.shared_reads.factor(), budget.shared_reads);
    EXPECT_LE(counts.shared_writes.factor(), budget.shared_writes);
    EXPECT_LE(counts.device_reads.factor(), budget.device_reads);
    EXPECT_LE(counts.device_writes.factor(), budget.device_writes);
    EXPECT_GT(counts.device_reads.requests, 0u);
  }
}

TEST(AccessBudgets, HoldForTheConvolutionalNetwork) {
  expect_within_budget(test::deeplizard(), 20);
  expect_within_budget(test::deeplizard(), 600);
}

TEST(AccessBudgets, HoldForAnMlp) {
  expect_within_budget(test::mlp(), 20);
  expect_within_budget(test::mlp(), 600);
}

}  // namespace
}  // namespace sweep::cuda
