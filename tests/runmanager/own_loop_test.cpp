// A training loop as users of the library write it: the example of README and run_manager.h, compiled and
// run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/engine.h"
#include "runmanager/run_manager.h"
#include "tests/runmanager/run_world.h"

namespace sweep {
namespace {

TEST(OwnTrainingLoop, IsFollowedByRunManager) {
  TemporaryDirectory directory;
  const Dataset data = small_dataset();

  RunManager manager({.directory = directory.path() / "mine"});
  for (const sweep::Run& run : RunBuilder::get_runs({{"lr", {0.1, 0.01}}, {"batch_size", {10, 20}}})) {
    const Network network(small_network(), data.shape);
    const auto batch_size = static_cast<std::size_t>(run.get<std::int64_t>("batch_size"));
    DataLoader loader(data.train, {.batch_size = batch_size, .shuffle = true});
    const auto engine = make_engine(network, {.device = parse_device("cpu"),
                                              .batch_size = batch_size,
                                              .optimizer = SgdOptions{},
                                              .transform = data.transform});
    engine->set_parameters(initial_parameters(network, /*seed=*/1));

    manager.begin_run(run, network, loader);
    for (std::uint32_t epoch = 0; epoch < 3; ++epoch) {
      manager.begin_epoch();
      loader.begin_epoch(epoch);
      while (const Batch* batch = loader.next()) {
        engine->train(*batch, run.get<double>("lr"));
        manager.track(engine->take_totals());
      }
      manager.end_training();
      manager.track_parameters(engine->parameters(), engine->gradients());
      manager.end_epoch();
    }
    manager.end_run();
  }
  manager.save("results");

  const auto rows = parse_csv(tbwriter::slurp(directory.path() / "mine/results.csv"));
  EXPECT_EQ(rows.size(), 1u + 4 * 3);
  const auto scalars = last_scalars(tbwriter::read_run(directory.path() / "mine/lr=0.01,batch_size=20"));
  EXPECT_NEAR(scalars.at("Number Correct/train") / 40, scalars.at("Accuracy/train"), 1e-6);
}

}  // namespace
}  // namespace sweep
