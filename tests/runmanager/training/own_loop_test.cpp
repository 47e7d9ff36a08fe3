// A training loop as users of the library write it: the example of README and run_manager.h, compiled and
// run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/engine/engine.h"
#include "runmanager/training/run_manager.h"
#include "tests/support/run_world.h"

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
        manager.track(*engine);
      }
      manager.end_training();
      manager.track_parameters(*engine);
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

// An engine of a device that this machine does not need to have.
class FarEngine final : public Engine {
 public:
  FarEngine(Device device, std::unique_ptr<Engine> near) : device_(device), near_(std::move(near)) {}
  Device device() const override { return device_; }
  void train(const Batch& batch, double rate) override { near_->train(batch, rate); }
  void evaluate(const Batch& batch) override { near_->evaluate(batch); }
  void predict(const Batch& batch, std::span<float> outputs) override { near_->predict(batch, outputs); }
  Totals take_totals() override { return near_->take_totals(); }
  std::vector<float> parameters() const override { return near_->parameters(); }
  void set_parameters(std::span<const float> values) override { near_->set_parameters(values); }
  std::vector<float> gradients() const override { return near_->gradients(); }
  std::vector<OptimizerState> optimizer_state() const override { return near_->optimizer_state(); }
  std::int64_t step_count() const override { return near_->step_count(); }
  void set_optimizer_state(std::span<const OptimizerState> state, std::int64_t count) override {
    near_->set_optimizer_state(state, count);
  }

 private:
  Device device_;
  std::unique_ptr<Engine> near_;
};

// How a loop gives its engine to the manager.
using Track = void (*)(RunManager&, Engine&);
void track_totals(RunManager& manager, Engine& engine) { manager.track(engine); }
void track_weights(RunManager& manager, Engine& engine) { manager.track_parameters(engine); }

// What the manager says of an engine on `engine_device` in a run that is to be on `run_device`; "" if it
// takes it.
std::string complaint(const std::string& run_device, const std::string& engine_device,
                      Track track = track_totals) {
  TemporaryDirectory directory;
  const Dataset data = small_dataset();
  const Network network(small_network(), data.shape);
  DataLoader loader(data.train, {.batch_size = 10});
  FarEngine engine(parse_device(engine_device), make_engine(network, {.device = {}, .batch_size = 10}));
  RunManager manager({.directory = directory.path() / "mine"});
  manager.begin_run(RunBuilder::get_runs({{"device", {run_device}}}).at(0), network, loader);
  manager.begin_epoch();
  try {
    track(manager, engine);
  } catch (const DeviceError& error) {
    return error.what();
  }
  return "";
}

TEST(OwnTrainingLoop, ThatMixesDevicesIsToldBoth) {
  EXPECT_EQ(complaint("cpu", "cpu"), "");
  EXPECT_EQ(complaint("cuda:0", "cuda"), "");
  EXPECT_EQ(complaint("the one in the cellar", "cuda"), "") << "no name of ours says nothing";
  EXPECT_THAT(complaint("cuda", "cpu"), ::testing::HasSubstr("expected device cuda:0 but got device cpu"));
  EXPECT_THAT(complaint("cuda:1", "cuda:0"),
              ::testing::HasSubstr("expected device cuda:1 but got device cuda:0"));
  EXPECT_THAT(complaint("cpu", "cuda:2"), ::testing::HasSubstr("expected device cpu but got device cuda:2"));
}

TEST(OwnTrainingLoop, ThatRecordsWeightsOfAnotherDeviceIsToldBoth) {
  EXPECT_EQ(complaint("cpu", "cpu", track_weights), "");
  EXPECT_THAT(complaint("cuda:0", "cpu", track_weights),
              ::testing::HasSubstr("expected device cuda:0 but got device cpu"));
  EXPECT_THAT(complaint("cpu", "cuda:0", track_weights),
              ::testing::HasSubstr("expected device cpu but got device cuda:0"));
}

}  // namespace
}  // namespace sweep
