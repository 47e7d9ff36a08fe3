// Trains a small network on bright and dark pictures, without sweep files and TensorBoard.
#include <core/dataset.h>
#include <core/engine.h>

#include <cstdio>

int main() {
  std::vector<std::uint8_t> pixels;
  std::vector<std::int64_t> labels;
  for (int i = 0; i < 200; ++i) {
    pixels.insert(pixels.end(), 16, i % 2 == 1 ? 255 : 0);
    labels.push_back(i % 2);
  }
  sweep::DataArrays data;
  data.arrays = {{"x", {200, 1, 4, 4}, std::move(pixels)}, {"y", {200}, std::move(labels)}};
  data.class_names = {"dark", "bright"};
  sweep::DatasetSpec parts;
  parts.validation = 0.2;
  parts.split = sweep::SplitMethod::kRandom;
  const sweep::Dataset set = sweep::make_dataset(std::move(data), parts);

  const sweep::Network network(
      {"tiny", {{"flatten", "flatten", {}}, {"out", "linear", {{"out_features", std::int64_t{2}}}}}},
      set.shape);

  sweep::EngineOptions options;
  options.batch_size = 50;
  options.optimizer = sweep::AdamOptions{};
  const auto engine = sweep::make_engine(network, options);
  engine->set_parameters(sweep::initial_parameters(network, /*seed=*/1));

  sweep::LoaderOptions order;
  order.batch_size = 50;
  order.shuffle = true;
  sweep::DataLoader loader(set.train, order);
  sweep::Totals totals;
  for (std::uint32_t epoch = 0; epoch < 20; ++epoch) {
    loader.begin_epoch(epoch);
    while (const sweep::Batch* batch = loader.next()) engine->train(*batch, /*learning_rate=*/0.05);
    totals = engine->take_totals();
  }
  sweep::DataLoader others(set.validation, order);
  others.begin_epoch(0);
  while (const sweep::Batch* batch = others.next()) engine->evaluate(*batch);
  totals += engine->take_totals();
  std::printf("%d of %d right\n", static_cast<int>(totals.correct), static_cast<int>(totals.samples));
  return totals.samples == 200 && totals.correct == 200 ? 0 : 1;
}
