#include "tests/support/run_world.h"

#include <csignal>

namespace sweep {

FakeEngine::FakeEngine(const Network& network, FakeTraining& training)
    : training_(training), classes_(element_count(network.output())), parameters_(network.parameter_count()) {
  ++training_.engines;
}

void FakeEngine::train(const Batch& batch, const StepValues& values) {
  training_.learning_rates.push_back(values.learning_rate);
  if (values.momentum) training_.momenta.push_back(*values.momentum);
  const auto samples = static_cast<std::int64_t>(batch.size());
  const Totals totals =
      training_.on_train
          ? training_.on_train(batch, steps_)
          : Totals{.loss = 0.5 * static_cast<double>(samples), .correct = samples / 2, .samples = samples};
  totals_ += totals;
  for (float& value : parameters_) value += 1;
  if (steps_ == training_.breaks_weights_in_step) parameters_[0] = std::numeric_limits<float>::infinity();
  ++steps_;
  ++training_.batches;
}

void FakeEngine::evaluate(const Batch& batch, std::span<float> outputs, bool counts) {
  if (counts) {
    const auto samples = static_cast<std::int64_t>(batch.size());
    totals_.loss += training_.evaluation_loss * static_cast<double>(samples);
    totals_.correct += samples;
    totals_.samples += samples;
  }
  ++training_.passes;
  for (std::size_t i = 0; i < outputs.size(); ++i) outputs[i] = i % classes_ == 0 ? 1.0f : 0.0f;
}

Totals FakeEngine::take_totals() { return std::exchange(totals_, {}); }

std::vector<float> FakeEngine::array(const EngineArray& which) const {
  if (which.kind == EngineArray::kParameters) return parameters_;
  if (which.kind == EngineArray::kBuffers) return {};
  const float value = which.kind == EngineArray::kState ? static_cast<float>(steps_) : -0.25f;
  return std::vector<float>(parameters_.size(), value);
}

void FakeEngine::set_array(const EngineArray& which, std::span<const float> values) {
  if (which.kind != EngineArray::kParameters) return;
  parameters_.assign(values.begin(), values.end());
  training_.first_parameters = parameters_;
}

Dataset small_dataset() {
  std::vector<std::uint8_t> pixels;
  std::vector<std::int32_t> labels;
  for (std::size_t i = 0; i < 70; ++i) {
    labels.push_back(static_cast<std::int32_t>(i % 3));
    pixels.insert(pixels.end(), 16, static_cast<std::uint8_t>(i));
  }
  const auto set =
      std::make_shared<TensorDataset>(TensorDataset{{1, 4, 4}, std::move(pixels), std::move(labels)});
  Dataset data;
  data.name = "tiny";
  data.shape = set->shape;
  data.class_names = {"a", "b/c", "d"};
  data.train = {set, 0, 40};
  data.validation = {set, 40, 10};
  data.test = {set, 50, 20};
  data.files = {{"tiny.gz", std::string(64, 'a')}};
  return data;
}

NetworkSpec small_network() {
  return {"small-net", {{"flatten", "flatten", {}}, {"out", "linear", {{"out_features", std::int64_t{3}}}}}};
}

RunConfig small_run(std::size_t index, double lr, const std::string& device) {
  RunConfig run;
  run.index = index;
  run.name = "lr=" + std::string(lr == 0.5 ? "0.5" : "0.25") + ",device=" + device;
  run.params = {{"lr", lr}, {"device", device}};
  run.dataset.name = "tiny";
  run.network = small_network();
  run.epochs = 2;
  run.seed = 7;
  run.lr = lr;
  run.batch_size = 10;
  run.shuffle = false;
  run.device = device;
  run.resolved = nlohmann::ordered_json{
      {"lr", lr}, {"epochs", 2}, {"seed", 7}, {"device", device}, {"network", "small-net"}};
  return run;
}

Sweep small_sweep(std::size_t runs) {
  Sweep sweep;
  sweep.name = "small";
  sweep.file = "small.json";
  sweep.keys = {"lr", "device"};
  sweep.runs = {small_run(0, 0.5), small_run(1, 0.25)};
  sweep.runs.resize(runs);
  sweep.resolved = {{"name", "small"}, {"epochs", 2}};
  return sweep;
}

SweepEnvironment World::environment() {
  SweepEnvironment world;
  world.make_engine = [this](const Network& network, const EngineOptions& engine_options) {
    training.options = engine_options;
    return std::make_unique<FakeEngine>(network, training);
  };
  world.load_dataset = [this](const DatasetSpec&) {
    ++data_loads;
    return small_dataset();
  };
  world.unavailable_reason = [](const Device& device) -> std::optional<std::string> {
    if (device.type == DeviceType::kCuda) return "there is none here";
    return std::nullopt;
  };
  world.clock = [this] { return seconds += tick; };
  world.stop_requested = [this] { return signal; };
  world.terminal = {.interactive = false,
                    .color = false,
                    .unicode = true,
                    .width = [] { return 80; },
                    .write = [this](std::string_view text) { terminal_output += text; }};
  world.out = &out;
  return world;
}

SweepOutcome World::run_batches(std::size_t batches, const Sweep& sweep) {
  training.on_train = [this, batches](const Batch& batch, std::int64_t) -> Totals {
    if (training.batches + 1 >= batches) signal = SIGTERM;
    return {.loss = 1, .correct = 0, .samples = static_cast<std::int64_t>(batch.size())};
  };
  SweepOutcome outcome = run(sweep);
  EXPECT_EQ(outcome.exit_code, 143);
  signal = 0;
  training = {};
  return outcome;
}

std::vector<std::string> statuses(const std::vector<RunRecord>& runs) {
  std::vector<std::string> names;
  for (const RunRecord& run : runs) names.emplace_back(to_string(run.status));
  return names;
}

std::map<std::string, double> last_scalars(const std::vector<proto::Event>& events) {
  std::map<std::string, double> scalars;
  tbwriter::for_each_value(events, [&](const auto&, const auto& value) {
    if (value.has_simple_value()) scalars[value.tag()] = value.simple_value();
  });
  return scalars;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<std::vector<std::string>> parse_csv(const std::string& text) {
  std::vector<std::vector<std::string>> rows(1, {""});
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    std::string& field = rows.back().back();
    if (quoted && c == '"' && i + 1 < text.size() && text[i + 1] == '"') {
      field += text[++i];
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && c == ',') {
      rows.back().emplace_back();
    } else if (!quoted && c == '\n') {
      rows.push_back({""});
    } else {
      field += c;
    }
  }
  EXPECT_FALSE(quoted);
  EXPECT_EQ(rows.back(), std::vector<std::string>{""}) << "the last line must end, too";
  rows.pop_back();
  return rows;
}

}  // namespace sweep
