// A training loop of one's own, with RunBuilder and RunManager to record it for TensorBoard.
#include <core/dataset.h>
#include <core/engine.h>
#include <runmanager/run_builder.h>
#include <runmanager/run_manager.h>

#include <memory>

namespace {

// 1,000 pictures, each with a bright row that tells its class.
std::shared_ptr<const sweep::TensorDataset> striped_pictures() {
  auto set = std::make_shared<sweep::TensorDataset>();
  set->shape = {1, 10, 10};
  std::vector<std::uint8_t> pixels;
  std::vector<std::int32_t> labels;
  for (std::size_t i = 0; i < 1000; ++i) {
    labels.push_back(static_cast<std::int32_t>(i * 7 % 10));
    for (std::size_t pixel = 0; pixel < 100; ++pixel)
      pixels.push_back(pixel / 10 == i * 7 % 10 ? 200 : static_cast<std::uint8_t>((i + pixel) % 50));
  }
  set->samples = std::move(pixels);
  set->targets = std::move(labels);
  return set;
}

}  // namespace

int main() {
  const auto set = striped_pictures();
  const sweep::NetworkSpec spec{"stripes",
                                {{"flatten", "flatten", {}},
                                 {"fc1", "linear", {{"out_features", std::int64_t{20}}}},
                                 {"relu1", "relu", {}},
                                 {"out", "linear", {{"out_features", std::int64_t{10}}}}}};
  sweep::RunManagerOptions manager_options;
  manager_options.directory = "runs/own-loop";
  sweep::RunManager manager(manager_options);

  for (const sweep::Run& run :
       sweep::RunBuilder::get_runs({{"lr", {0.01, 0.001}}, {"batch_size", {50, 100}}})) {
    const sweep::Network network(spec, set->shape);
    sweep::EngineOptions options;
    options.batch_size = static_cast<std::size_t>(run.get<std::int64_t>("batch_size"));
    options.optimizer = sweep::AdamOptions{};
    const auto engine = sweep::make_engine(network, options);
    engine->set_parameters(sweep::initial_parameters(network, /*seed=*/1));
    sweep::LoaderOptions order;
    order.batch_size = options.batch_size;
    order.shuffle = true;
    sweep::DataLoader loader({set, 0, set->size()}, order);

    manager.begin_run(run, network, loader);
    for (std::uint32_t epoch = 0; epoch < 3; ++epoch) {
      manager.begin_epoch();
      loader.begin_epoch(epoch);
      while (const sweep::Batch* batch = loader.next()) engine->train(*batch, run.get<double>("lr"));
      manager.track(*engine);
      manager.end_epoch();
    }
    manager.end_run();
    manager.save("results");
  }
}
