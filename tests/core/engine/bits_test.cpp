// What changes no bit of a training: threads, devices that share batches, stages, micro-batches, parts one
// after another, and another engine that goes on. One table of all of it.

#include <ostream>

#include "tests/support/training.h"

namespace sweep::bits_test {

using namespace test;

// Trainings, and ways that give them the bits that `one` gives; `resumed`: in several ways, one after
// another.
struct Row {
  std::string name;
  std::vector<Training> trainings;
  Way one;
  std::vector<Way> same;
  std::vector<std::vector<Way>> resumed = {};
};

void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

bool on_cpu() { return device().type == DeviceType::kCpu; }

// Devices that share batches have the bits of one. GPUs have others than one GPU, but the same however many.
Way sharing(int accumulate = 1) { return {.data = on_cpu() ? 1 : 2, .accumulate = accumulate}; }

// place(1), "cuda:1"
std::string place(int index) { return Device{device().type, index}.name(); }

std::vector<LayerPlacement> last_layer_apart() { return {{"out", place(1)}, {"*", place(0)}}; }

Training cut_before(Training training, std::vector<std::string> cuts) {
  training.cuts = std::move(cuts);
  return training;
}

// Batches of n samples, of fewer, and again of n.
Training of_size(const NetworkSpec& network, const Shape& input, std::size_t n,
                 const EngineOptions& options = options_with(AdamOptions{})) {
  return {network, input, options, {n, n / 3 + 1, n}};
}

std::vector<Way> on_threads(std::initializer_list<int> numbers) {
  std::vector<Way> ways;
  for (const int threads : numbers) ways.push_back({.threads = threads});
  return ways;
}

std::vector<Training> of_any_size(const NetworkSpec& network, const Shape& input,
                                  std::initializer_list<std::size_t> sizes) {
  std::vector<Training> all;
  for (const std::size_t n : sizes) all.push_back(of_size(network, input, n));
  return all;
}

std::vector<Training> all_optimizers() {
  std::vector<Training> all = {of_size(small_residual(), {3, 8, 8}, 60)};
  for (const OptimizerOptions& optimizer :
       {OptimizerOptions(AdamOptions{}), OptimizerOptions(SgdOptions{}),
        OptimizerOptions(SgdOptions{0.9, 0, 1e-4, true}),
        OptimizerOptions(AdamOptions{0.9, 0.99, 1e-8, 0.1, true}), OptimizerOptions(RmspropOptions{}),
        OptimizerOptions(RmspropOptions{0.9, 1e-6, 0.01, 0.5, true})})
    all.push_back(of_size(deeplizard(), {1, 28, 28}, 60, options_with(optimizer)));
  return all;
}

std::vector<Training> staged_trainings() {
  const EngineOptions options = options_with(AdamOptions{}, 0.5);
  return {of_size(deeplizard(), {1, 28, 28}, sized(333, 37), options),
          of_size(deeplizard(), {1, 28, 28}, sized(16, 6), options),
          of_size(with_dropout(mlp()), {1, 28, 28}, sized(200, 50), options),
          of_size(with_dropout(small_residual()), {3, 8, 8}, sized(150, 21), options)};
}

std::vector<Training> cut_before_every_layer() {
  std::vector<Training> all;
  for (Training training : {kCnn, Training{.network = mlp(), .input = {1, 9, 9}}, kShortcuts,
                            Training{.network = small_residual(), .input = {3, 8, 8}}}) {
    training.batches = {11, 4, 1, 11};
    const Network network = network_of(training);
    for (const Layer& layer : network.layers().subspan(1)) {
      // A residual layer also has the name of the layers in it.
      if (layer.type != "residual") all.push_back(cut_before(training, {layer.name}));
    }
  }
  return all;
}

std::vector<Training> with_other_losses() {
  Training smoothed = cut_before(kCnn, {"pool1"});
  smoothed.options.loss.label_smoothing = 0.1;
  return {
      smoothed,
      {.network =
           {"without-head",
            {conv("conv", 4, 3), flatten("flatten"), linear("fc", 10), {"dropout", "dropout", {{"p", 0.1}}}}},
       .input = {1, 6, 6},
       .options = options_with(SgdOptions{.momentum = 0.9}, 0, some_weights()),
       .cuts = {"fc"}}};
}

// So many weights that several blocks of samples go through the layers together. Stages take one at a time.
Training wide_layers(std::size_t samples) {
  const NetworkSpec network{"wide-layers",
                            {flatten("flatten"), linear("fc1", 520), relu("relu1"), dropout(0.2),
                             linear("fc2", 520), relu("relu2"), linear("out", 10)}};
  return {.network = network,
          .input = {1, 28, 28},
          .options = options_with(AdamOptions{}),
          .batches = {samples, 7}};
}

// The weight gradients of layers that one kernel has on one device are sums of as many parts on several.
Training wide_batch(std::vector<std::string> cuts) {
  return {.network = {"wide",
                      {flatten("flatten"), linear("fc1", 120), relu("relu1"), linear("fc2", 120),
                       relu("relu2"), linear("out", 10)}},
          .input = {1, 4, 4},
          .batches = {1700},
          .cuts = std::move(cuts)};
}

// Every number of micro-batches, in both orders.
std::vector<Way> pipelines(const std::vector<int>& micro_batches, Way way) {
  std::vector<Way> ways;
  for (const int count : micro_batches) {
    for (const PipelineSchedule schedule : {kGpipe, kEager}) {
      way.micro_batches = count;
      way.schedule = schedule;
      ways.push_back(way);
    }
  }
  return ways;
}

std::vector<Row> rows_of_threads() {
  if (!on_cpu()) return {};
  return {{"Threads",
           of_any_size(deeplizard(), {1, 28, 28}, {1, 15, 16, 17, 100, 333, 1100}),
           {},
           on_threads({2, 3, 4, 5, 6, 7, 8})},
          {"ThreadsInPhases",
           of_any_size(small_residual(), {3, 8, 8}, {2, 16, 17, 100, 333}),
           {},
           on_threads({2, 3, 5, 8})},
          // Enough channels for Winograd's algorithm, with stride 1 and 2.
          {"ThreadsOfWideConvolutions",
           {of_size(wide_convolutions(), {1, 12, 15}, 133), of_size(small_residual(16), {3, 16, 16}, 50)},
           {},
           on_threads({2, 3, 4, 7})},
          {"PartsWithoutBatchNormalization", {shared_trainings()[0]}, {}, {{.threads = 2, .accumulate = 4}}}};
}

std::vector<Row> rows_of_shared_batches() {
  std::vector<Way> devices = {{.data = 3}, {.data = 4}};
  if (on_cpu()) {
    for (const int data : {1, 2, 3, 4}) {
      for (const int threads : {data, 3 * data}) devices.push_back({.threads = threads, .data = data});
    }
  }
  std::vector<std::vector<Way>> resumed = {{{.data = 3}, {.data = 2}}};
  if (on_cpu()) resumed = {{{.data = 4}, {.data = 2}}, {{}, {.data = 2}}, {{.data = 2}, {.data = 4}}};
  std::vector<Row> rows = {{"SharedBatches", shared_trainings(), sharing(), devices, resumed}};
  for (const int accumulate : {2, 3}) {
    if (accumulate == 2 && device_is_stand_in()) continue;  // as CutsIn2Parts and others there
    for (Way& way : devices) way.accumulate = accumulate;
    const std::vector<Training> all = shared_trainings();
    rows.push_back({"SharedBatchesIn" + std::to_string(accumulate) + "Parts",
                    {all[0], all[3], all[6], all[7]},
                    sharing(accumulate),
                    devices});
  }
  return rows;
}

std::vector<Row> rows_of_stages() {
  const std::vector<LayerPlacement> back_and_forth = {
      {"conv1", place(0)}, {"conv2", place(1)}, {"fc1", place(0)}, {"out", place(1)}};
  const std::vector<Training> staged = staged_trainings(), cnns = {staged[0], staged[1]};
  std::vector<Way> models = {{.model = last_layer_apart()}},
                   back = pipelines({4}, {.threads = 3, .model = back_and_forth});
  for (const int threads : {2, 5}) {
    if (on_cpu()) models.push_back({.threads = threads, .model = last_layer_apart()});
  }
  back.push_back({.threads = 2, .model = back_and_forth});
  const auto micro_batches = device_is_stand_in() ? std::vector{1, 3, 1000} : std::vector{1, 2, 3, 7, 1000};
  std::vector<Row> rows = {
      {"StagesOfAModel", staged, {.threads = 2}, models},
      {"StagesOfAModelBackAndForth", cnns, {.threads = 2}, back},
      {"StagesOfAPipeline", staged, {}, pipelines(micro_batches, {.threads = 2, .stages = 2})},
      {"MoreStagesThanThreads",
       {of_size(deeplizard(), {1, 28, 28}, sized(100, 37))},
       {},
       {{.stages = 4, .micro_batches = 5, .schedule = kEager}}}};
  if (on_cpu()) {
    rows.push_back({"StagesOfWideLayers",
                    {wide_layers(15), wide_layers(230), wide_layers(400)},
                    {},
                    {{.model = last_layer_apart()}, {.threads = 3}}});
  }
  for (const int accumulate : {2, 5})
    rows.push_back(
        {"StagesIn" + std::to_string(accumulate) + "Parts",
         staged,
         {.accumulate = accumulate},
         {{.threads = 2, .accumulate = accumulate, .model = last_layer_apart()},
          {.threads = 2, .accumulate = accumulate, .stages = 2, .micro_batches = 3, .schedule = kEager}}});
  for (const auto& [data, accumulate] : {std::pair{2, 1}, {2, 2}, {3, 1}})
    rows.push_back({"Stages" + std::to_string(data) + "TimesIn" + std::to_string(accumulate) + "Parts",
                    staged,
                    sharing(accumulate),
                    {{.threads = 2,
                      .data = data,
                      .accumulate = accumulate,
                      .stages = 2,
                      .micro_batches = 3,
                      .schedule = kEager},
                     {.threads = 4, .data = data, .accumulate = accumulate, .model = last_layer_apart()}}});
  return rows;
}

// Layers that a test chooses.
std::vector<Row> rows_of_cuts() {
  const std::vector<Training> cut = {kCnn, kMlp, kResidual}, all = {kCnn, kMlp, kResidual, kShortcuts};
  std::vector<Way> of_cuts = {{.stages = 2, .micro_batches = 3, .schedule = kEager}};
  if (!device_is_stand_in()) of_cuts.push_back({.stages = 2});
  return {{"CutsBeforeAnyLayer", cut_before_every_layer(), {}, of_cuts},
          {"CutsInsideAShortcut",
           {cut_before(kShortcuts, {"first.b", "second.d", "second.e"}),
            cut_before(kShortcuts, {"first.norm", "second.leaky", "out"})},
           {},
           pipelines({1, 2, 4}, {.stages = 4})},
          {"CutsWithOtherLosses", with_other_losses(), {}, pipelines({1, 2, 5}, {.stages = 2})},
          {"CutsOfALargeBatch",
           {wide_batch({"out"}), wide_batch({"fc2"})},
           {},
           {{.stages = 2}, {.stages = 2, .micro_batches = 3}}},
          {"CutsThatOthersGoOnWith",
           all,
           {},
           {},
           {{{.stages = 2, .micro_batches = 2}, {}, {.stages = 3, .micro_batches = 3}}}},
          {"CutsIn2Parts",
           cut,
           {.accumulate = 2},
           {{.accumulate = 2, .stages = 2},
            {.accumulate = 2, .stages = 3, .micro_batches = 3},
            {.accumulate = 2, .stages = 2, .micro_batches = 2, .schedule = kEager}}},
          {"CutsIn5Parts",
           all,
           {.accumulate = 5},
           {{.accumulate = 5, .stages = 3},
            {.accumulate = 5, .stages = 3, .micro_batches = 4, .schedule = kEager}},
           {{{.accumulate = 5, .stages = 3}, {.accumulate = 5, .stages = 2}}}},
          {"CutsOfSharedBatches",
           all,
           sharing(),
           {{.data = 2, .stages = 2},
            {.data = 2, .stages = 3, .micro_batches = 4},
            {.data = 2, .stages = 2, .micro_batches = 9, .schedule = kEager},
            {.data = 4, .stages = 2, .micro_batches = 2, .schedule = kEager}},
           {{{.data = 4, .stages = 2, .micro_batches = 2},
             {.data = 2, .stages = 3, .schedule = kEager},
             {.data = 3}}}},
          {"CutsOfSharedBatchesIn2Parts",
           cut,
           sharing(2),
           {{.data = 2, .accumulate = 2, .stages = 3},
            {.data = 4, .accumulate = 2, .stages = 2, .micro_batches = 3, .schedule = kEager}}},
          // Stages of one device have one group of NCCL; sets of devices may begin with any.
          {"SharedBatchesOnAnyDevices",
           {kResidual},
           sharing(),
           {{.data = 2, .model = {{"stem", place(2)}, {"block1", place(0)}, {"block2", place(2)}}},
            {.data = 2, .model = {{"stem", place(1)}, {"block2.bn1", place(0)}, {"out", place(1)}}},
            {.data = 2, .model = {{"stem", place(5)}}},
            {.data = 2, .device = {device().type, on_cpu() ? 0 : 2}}}}};
}

std::vector<Row> rows() {
  std::vector<Row> all = {{"Resumed", all_optimizers(), {}, {}, {{{}, {.threads = 2}}}}};
  for (const auto& more : {rows_of_threads(), rows_of_shared_batches(), rows_of_stages(), rows_of_cuts()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

// Whether NVIDIA's libraries train, which may choose another algorithm for a part of a batch. Then the number
// of micro-batches may change the bits, but the number of devices does not.
bool is_cut_by_libraries(const Training& training) {
  if (on_cpu() || device_is_stand_in()) return false;
  const std::string kernels = engine_of(training, {})->kernels();
  return kernels != "builtin";
}

class Bits : public testing::TestWithParam<Row> {
 protected:
  void expect_bits_of(const EngineOutcome& one, const Training& training, const std::vector<Way>& ways) {
    SCOPED_TRACE(testing::Message() << training.network.name << " on " << training.batches[0] << " samples, "
                                    << testing::PrintToString(ways));
    for (const Way& way : ways) {
      const auto reason = missing_devices(training, way);
      ASSERT_TRUE(!reason || !(on_cpu() || device_is_stand_in())) << *reason;
      if (reason) return;
    }
    EngineOutcome expected = one, found;
    if (const Way& last = ways.back();
        last.micro_batches > 1 && last.data == 1 && is_cut_by_libraries(training)) {
      const Way one_stage{
          .accumulate = last.accumulate, .micro_batches = last.micro_batches, .schedule = last.schedule};
      expected = train(training, std::vector(ways.size(), one_stage));
    }
    found = train(training, ways);
    // Each engine has the sums of what it has trained itself.
    if (ways.size() > 1) expected.trained = found.trained;
    EXPECT_TRUE(same_bits(expected, found));
  }
};

TEST_P(Bits, AreTheSame) {
  const Row& row = GetParam();
  for (const Training& training : row.trainings) {
    if (missing_devices(training, row.one)) GTEST_SKIP() << *missing_devices(training, row.one);
    const EngineOutcome one = train(training, row.one);
    EXPECT_TRUE(std::isfinite(one.trained.loss) && std::isfinite(one.evaluated.loss));
    for (const Way& way : row.same) expect_bits_of(one, training, {way});
    for (const std::vector<Way>& ways : row.resumed) expect_bits_of(one, training, ways);
  }
}

INSTANTIATE_TEST_SUITE_P(Of, Bits, testing::ValuesIn(rows()), [](const auto& row) { return row.param.name; });

}  // namespace sweep::bits_test
