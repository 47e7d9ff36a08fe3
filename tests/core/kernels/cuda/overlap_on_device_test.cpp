// Trainings with kernels that start while the previous one still runs, and without: the bits are the same.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "core/engine/engine.h"
#include "tests/core/kernels/cuda/kernels/any_device.h"
#include "tests/support/batch.h"
#include "tests/support/environment.h"
#include "tests/support/test_device.h"
#include "tests/support/test_networks.h"

namespace sweep {
namespace {

struct Case {
  NetworkSpec network;
  OptimizerOptions optimizer;
  double clip_norm;
};

// Two epochs over a set on the device, more steps than are started at once, with a last batch that is short.
std::vector<float> trained(const Case& c, const char* overlap) {
  const test::Environment variable("SWEEP_CUDA_OVERLAP", overlap);
  const std::size_t batch = test::device_is_stand_in() ? 6 : 100, steps = test::device_is_stand_in() ? 3 : 33;
  const Network network(c.network, {1, 28, 28});
  const auto engine = make_engine(network, {.device = test::device(),
                                            .batch_size = batch,
                                            .optimizer = c.optimizer,
                                            .clip_norm = c.clip_norm,
                                            .placement = Placement::kDevice});
  engine->set_parameters(initial_parameters(network, 3));
  const test::OwnedBatch owned = test::random_batch(batch * steps - batch / 2, 784, 10, 4);
  const auto set =
      std::make_shared<const TensorDataset>(TensorDataset{{1, 28, 28}, owned.pixels, owned.labels});
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (std::size_t first = 0; first < owned.indices.size(); first += batch) {
      const std::size_t count = std::min(batch, owned.indices.size() - first);
      const Batch part{view(set->samples), view(set->targets), std::span(owned.indices).subspan(first, count),
                       set};
      engine->train(part, 0.1);
      if (first == 0) engine->evaluate(part);
    }
  }
  std::vector<float> outcome = engine->parameters();
  outcome.push_back(static_cast<float>(engine->take_totals().loss));
  return outcome;
}

TEST(Overlap, ChangesNoBitOfATraining) {
  for (const Case& c : {Case{test::deeplizard(), AdamOptions{}, 0},
                        Case{test::deeplizard(), SgdOptions{.momentum = 0.9}, 0.5},
                        Case{test::small_residual(), AdamOptions{}, 0},
                        Case{test::mlp(), RmspropOptions{.momentum = 0.5, .centered = true}, 0}}) {
    const test::KernelCount count;
    const std::vector<float> overlapped = trained(c, nullptr);
    count.expect_overlap();
    EXPECT_EQ(trained(c, "0"), overlapped) << c.network.name;
  }
}

}  // namespace
}  // namespace sweep
