#include "tests/core/kernels/cuda/budgets/counted_step.h"

#include <algorithm>

#include "core/engine/engine.h"
#include "core/kernels/cuda/host/code_names.h"
#include "tests/support/batch.h"
#include "tests/support/environment.h"

namespace sweep::cuda {

std::vector<CountedGrid> count_step(const Network& network, std::size_t images, std::uint64_t most_accesses) {
  const test::Environment kernels("SWEEP_CUDA_KERNELS", "own"), overlap("SWEEP_CUDA_OVERLAP", "0");
  EngineOptions options;
  options.device = parse_device("cuda");
  options.batch_size = images;
  options.optimizer = AdamOptions{};
  const auto engine = make_engine(network, options);
  engine->set_parameters(initial_parameters(network, 1));
  host::AccessCount count(most_accesses);
  // The first step is for AccessCount to learn from.
  constexpr std::size_t kLeastImages = 24;
  for (const std::size_t batch_images : {std::min(images, kLeastImages), images}) {
    const test::OwnedBatch batch =
        test::random_batch(batch_images, element_count(network.input()), 10, batch_images);
    count.restart();
    engine->train(batch.view(), 0.001);
    engine->take_totals();
  }
  std::vector<CountedGrid> grids;
  for (const host::GridCounts& counts : count.grids())
    grids.push_back({host::name_of_kernel(counts.kernel), counts});
  return grids;
}

}  // namespace sweep::cuda
