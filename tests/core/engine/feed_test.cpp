// However samples come to the engine, whole sets or batches of their own, in few or many calls: the same
// training.

#include "core/data/data_loader.h"
#include "tests/support/training.h"

namespace sweep::feed_test {

using namespace test;

std::shared_ptr<const TensorDataset> small_set(std::size_t images, std::uint64_t seed) {
  return random_set(images, {1, 7, 7}, 10, seed);
}

Training training_with(Placement placement) {
  Training training{with_dropout(mlp()), {1, 7, 7}, options_with(SgdOptions{.momentum = 0.9}), {7}};
  training.options.placement = placement;
  return training;
}

std::unique_ptr<Engine> new_engine(Placement placement = Placement::kAuto, const Way& way = {}) {
  return engine_of(training_with(placement), way);
}

// One device, and several that cut a batch, as far as there are any.
std::vector<Way> ways() {
  std::vector<Way> all = {{},
                          {.accumulate = 3},
                          {.data = 2},
                          {.stages = 2, .micro_batches = 2},
                          {.data = 2, .accumulate = 2, .stages = 2, .micro_batches = 2}};
  std::erase_if(all, [](const Way& way) { return missing_devices(training_with({}), way).has_value(); });
  return all;
}

using Train = std::function<void(Engine& engine, const Batch& batch, int step)>;

void train_plainly(Engine& engine, const Batch& batch, int /*step*/) { engine.train(batch, 0.05); }

void train_on_a_set_without_a_name(Engine& engine, const Batch& batch, int /*step*/) {
  Batch anonymous = batch;
  anonymous.set = nullptr;
  engine.train(anonymous, 0.05);
}

void train_on_a_batch_that_changes(Engine& engine, const Batch& batch, int /*step*/) {
  OwnedBatch own;
  for (const std::uint32_t row : batch.indices) {
    const auto sample = batch.set->pixels().subspan(row * 49, 49);
    own.pixels.insert(own.pixels.end(), sample.begin(), sample.end());
    own.labels.push_back(batch.labels()[row]);
    own.indices.push_back(static_cast<std::uint32_t>(own.indices.size()));
  }
  engine.train(own.view(), 0.05);
  std::fill(own.pixels.begin(), own.pixels.end(), std::uint8_t{77});
  std::fill(own.labels.begin(), own.labels.end(), 3);
  std::fill(own.indices.begin(), own.indices.end(), 0);
}

void train_on_rows_that_change(Engine& engine, const Batch& batch, int /*step*/) {
  std::vector<std::uint32_t> rows(batch.indices.begin(), batch.indices.end());
  engine.train({batch.samples, batch.targets, rows, batch.set}, 0.05);
  std::fill(rows.begin(), rows.end(), 0);
}

void train_and_read(Engine& engine, const Batch& batch, int step) {
  engine.train(batch, 0.05);
  if (step % 5 == 0) engine.parameters();
  if (step % 7 == 0) engine.gradients();
  if (step % 11 == 0) engine.set_parameters(engine.parameters());
  if (step % 13 == 0) engine.set_optimizer_state(engine.optimizer_state(), engine.step_count());
}

// How samples come to an engine.
struct Feed {
  Placement placement = Placement::kAuto;
  bool prepared = false;
  int num_workers = 0;
  Train train = train_plainly;
};

// What was learned, and the sums.
struct Trained {
  std::vector<float> parameters;
  std::vector<std::tuple<double, std::int64_t, std::int64_t>> totals;
  std::optional<Placement> placement;

  bool operator==(const Trained& other) const {
    return parameters == other.parameters && totals == other.totals;
  }
};

// Two epochs of 45 batches, the last of which is short: more than are started together, and no multiple of
// it. After each, an evaluation.
Trained trained(const Feed& feed, const Way& way = {}) {
  const auto set = small_set(380, 3);
  const Subset training{set, 2, 310};
  std::vector<Subset> evaluation = {{set, 312, 68}};
  // They may take the place of the trained one on the first device.
  for (std::uint64_t other = 0; other < 4; ++other) evaluation.push_back({small_set(40, 20 + other), 0, 40});
  const auto engine = new_engine(feed.placement, way);
  Trained result;
  const auto take_totals = [&] {
    const Totals totals = engine->take_totals();
    result.totals.emplace_back(totals.loss, totals.correct, totals.samples);
  };
  if (feed.prepared) result.placement = engine->prepare(training, evaluation);
  DataLoader loader(training, {.batch_size = 7, .shuffle = true, .num_workers = feed.num_workers, .seed = 5});
  int step = 0;
  for (std::uint32_t epoch = 0; epoch < 2; ++epoch) {
    loader.begin_epoch(epoch);
    while (const Batch* batch = loader.next()) feed.train(*engine, *batch, ++step);
    take_totals();
    for (const Subset& samples : evaluation) {
      DataLoader rest(samples, {.batch_size = 7});
      rest.begin_epoch(0);
      while (const Batch* batch = rest.next()) engine->evaluate(*batch);
      take_totals();
    }
  }
  EXPECT_EQ(engine->step_count(), 90);
  result.parameters = engine->parameters();
  return result;
}

TEST(Feed, HowBatchesComeChangesNoBit) {
  for (const Way& way : ways()) {
    SCOPED_TRACE(testing::Message() << way);
    const Trained whole = trained({}, way);
    EXPECT_EQ(std::get<2>(whole.totals[0]), 310);
    EXPECT_EQ(trained({.num_workers = 2}, way), whole) << "workers make batches of their own";
    for (const Train train : {train_on_a_set_without_a_name, train_on_a_batch_that_changes})
      EXPECT_EQ(trained({.train = train}, way).parameters, whole.parameters);
    EXPECT_EQ(trained({.placement = Placement::kHost}, way), whole);
    EXPECT_EQ(trained({.prepared = true, .num_workers = 2}, way), whole);
  }
  const std::vector<float> whole = trained({}).parameters;
  EXPECT_EQ(trained({.train = train_on_rows_that_change}).parameters, whole);
  EXPECT_EQ(trained({.train = train_and_read}).parameters, whole);
}

TEST(Feed, WhereTheSamplesAreChangesNoBit) {
  const Trained expected = trained({});
  for (const Placement placement : {Placement::kAuto, Placement::kDevice, Placement::kHost}) {
    for (const bool prepared : {false, true}) {
      for (const int num_workers : {0, 2}) {
        const Trained found = trained({placement, prepared, num_workers});
        EXPECT_EQ(found, expected);
        const Placement chosen = placement == Placement::kHost ? Placement::kHost : Placement::kDevice;
        EXPECT_EQ(found.placement,
                  prepared && device().type != DeviceType::kCpu ? std::optional(chosen) : std::nullopt);
      }
    }
  }
}

TEST(Feed, HowManyStepsAreStartedAtOnceChangesNoBit) {
  const std::vector<float> expected = trained({.prepared = true}).parameters;
  for (const char* steps : {"1", "4", "64"}) {
    const Environment environment("SWEEP_CUDA_STEPS", steps);
    EXPECT_EQ(trained({.prepared = true}).parameters, expected) << steps;
  }
  const Environment environment("SWEEP_CUDA_STEPS", "3");
  if (device().type == DeviceType::kCuda) {
    EXPECT_THROW(new_engine(), ConfigError);
  }
}

TEST(Feed, WhoAugmentsTheImagesChangesNoBit) {
  // Bytes with classes, and floats with numbers, of two channels.
  for (const bool floats : {false, true}) {
    const OwnedBatch all = random_batch(70, 2 * 9 * 7, 10, 7);
    std::vector<float> numbers, values;
    for (const std::uint8_t byte : all.pixels) values.push_back(static_cast<float>(byte) / 64);
    for (int i = 0; i < 700; ++i) numbers.push_back(static_cast<float>(i % 17));
    const auto set =
        std::make_shared<TensorDataset>(floats ? TensorDataset{{2, 9, 7}, values, numbers}
                                               : TensorDataset{{2, 9, 7}, all.pixels, all.labels});
    const Network cnn(
        {"cnn", {conv("conv", 3, 3), relu("relu"), pool("pool", 2), flatten("flatten"), linear("out", 10)}},
        set->shape);
    LoaderOptions loading{.batch_size = 16, .shuffle = true, .seed = 5, .repeat = 2};
    loading.augment = {{AugmentKind::kRandomCrop, 3},
                       {AugmentKind::kHorizontalFlip, 0},
                       {AugmentKind::kCutout, 4},
                       {AugmentKind::kRandomCrop, 1}};
    const auto trained = [&](Placement placement, int num_workers, int accumulate = 1) {
      const auto engine = engine_for(
          cnn, {.batch_size = 16,
                .loss = {.kind = floats ? LossOptions::Kind::kMse : LossOptions::Kind::kCrossEntropy},
                .augment = {loading.augment, loading.seed, loading.repeat},
                .placement = placement,
                .accumulation_steps = accumulate});
      loading.num_workers = num_workers;
      DataLoader loader({set, 5, 61}, loading);
      const std::optional<Placement> where = engine->prepare(loader.samples(), {});
      EXPECT_EQ(where, device().type == DeviceType::kCpu ? std::nullopt : std::optional(placement));
      loader.set_on_device(where == Placement::kDevice);
      for (std::uint32_t epoch = 0; epoch < 2; ++epoch) {
        loader.begin_epoch(epoch);
        while (const Batch* batch = loader.next()) {
          EXPECT_EQ(batch->augment.steps.size(), where == Placement::kDevice ? 4u : 0u);
          engine->train(*batch, 0.01);
        }
      }
      return engine->parameters();
    };
    const std::vector<float> expected = trained(Placement::kHost, 0);
    EXPECT_EQ(trained(Placement::kHost, 2), expected);
    EXPECT_EQ(trained(Placement::kDevice, 0), expected);
    EXPECT_EQ(trained(Placement::kDevice, 2), expected) << "without the workers";
    EXPECT_EQ(trained(Placement::kDevice, 0, 3), trained(Placement::kHost, 0, 3)) << "turn by turn";
    loading.augment.clear();
    EXPECT_NE(trained(Placement::kHost, 0), expected);
  }
}

TEST(Feed, AnEngineRefusesChangesThatItCannotMake) {
  const auto set = small_set(20, 3);
  const std::vector<std::uint32_t> rows = {3, 1};
  const std::vector<AugmentStep> steps = {{AugmentKind::kHorizontalFlip, 0}};
  const auto engine = new_engine();
  EXPECT_THROW(engine->train({view(set->samples), view(set->targets), rows, set, {steps, rows, 0}}, 0.1),
               ConfigError);
  if (device().type == DeviceType::kCpu) return;
  Training training = training_with(Placement::kDevice);
  training.options.augment = {steps, 1, 0};
  const std::vector<std::uint32_t> one = {3};
  EXPECT_THROW(engine_of(training, {})
                   ->train({view(set->samples), view(set->targets), rows, set, {steps, one, 0}}, 0.1),
               ShapeError);
}

TEST(Feed, DeviceSecondsAreThoseOfTheWorkSinceTheyWereLastTaken) {
  const auto engine = new_engine();
  const bool has_clock = engine->take_device_seconds().has_value();
  EXPECT_EQ(has_clock, device().type != DeviceType::kCpu);
  if (!has_clock) return;
  const auto set = small_set(70, 3);
  const std::vector<std::uint32_t> rows = {3, 1, 4, 15, 9, 2, 6};
  EXPECT_EQ(engine->take_device_seconds(), 0.0) << "nothing was asked for";
  const auto begin = std::chrono::steady_clock::now();
  // More pieces of work than are measured without reading: every one is sent alone.
  for (int i = 0; i < 300; ++i)
    engine->train({view(set->samples), view(set->targets), rows, i % 2 == 0 ? set : nullptr}, 0.1);
  const double seconds = *engine->take_device_seconds();
  const double passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  EXPECT_GT(seconds, 0);
  EXPECT_LE(seconds, passed);
  EXPECT_EQ(engine->take_device_seconds(), 0.0);
}

TEST(Feed, SetsOfTheSameSizeAreToldApart) {
  std::vector<std::shared_ptr<const TensorDataset>> sets;
  for (std::uint64_t i = 0; i < 5; ++i) sets.push_back(small_set(20, 10 + i));
  const std::vector<std::uint32_t> rows = {3, 1, 4, 15, 9, 2, 6};
  const auto outputs_of = [&](Engine& engine, const TensorDataset& set,
                              std::shared_ptr<const TensorDataset> named) {
    std::vector<float> outputs(70);
    engine.predict({view(set.samples), view(set.targets), rows, std::move(named)}, outputs);
    return outputs;
  };
  const auto engine = new_engine();
  for (int round = 0; round < 2; ++round) {
    for (const auto& set : sets)
      EXPECT_EQ(outputs_of(*engine, *set, set), outputs_of(*engine, *set, nullptr));
  }
  // More sets than stay on the device, in steps that are collected.
  const auto sum_of = [&](bool named) {
    for (const auto& set : sets)
      engine->evaluate({view(set->samples), view(set->targets), rows, named ? set : nullptr});
    return engine->take_totals().loss;
  };
  EXPECT_EQ(sum_of(true), sum_of(false));
  // A new set may get the memory of one that is gone.
  for (std::uint64_t i = 0; i < 5; ++i) {
    const auto set = small_set(20, 50 + i);
    EXPECT_EQ(outputs_of(*engine, *set, set), outputs_of(*engine, *set, nullptr));
  }
}

TEST(Feed, TrainingAndEvaluationTakeTurnsInTheOrderOfTheCalls) {
  const auto set = small_set(30, 4), other = small_set(30, 6);
  const std::vector<std::uint32_t> rows = {3, 1, 4, 15, 9, 2, 6}, few = {5, 8};
  const auto run = [&](bool one_by_one) {
    const auto engine = new_engine();
    std::vector<double> losses;
    const auto add = [&](auto call) {
      call();
      if (one_by_one) losses.push_back(engine->take_totals().loss);
    };
    for (int i = 0; i < 3; ++i) {
      add([&] { engine->train({view(set->samples), view(set->targets), rows, set}, 0.1); });
      add([&] { engine->train({view(set->samples), view(set->targets), rows, set}, 0.2); });
      add([&] { engine->train({view(set->samples), view(set->targets), few, set}, 0.1); });
      add([&] { engine->evaluate({view(other->samples), view(other->targets), rows, other}); });
    }
    double sum = engine->take_totals().loss;
    for (const double loss : losses) sum += loss;
    return std::pair(engine->parameters(), sum);
  };
  const auto together = run(false), apart = run(true);
  EXPECT_EQ(together.first, apart.first);
  EXPECT_NEAR(together.second, apart.second, 1e-9);
}

}  // namespace sweep::feed_test
