// Measures epochs of whole networks on random samples in memory, single kernels, and the machine's peak rate
// of multiply-adds. Flags are those of Google Benchmark, and:
//   --threads N   CPU threads of the engine (default 1)
//   --device NAME   device of the engine (default cpu)
//   --placement NAME   memory of the samples: auto, device, host
//   --network FILE --input CHANNELS,HEIGHT,WIDTH --batch N --samples N   one network instead of the examples
//   --kernel-times STEPS   instead of all that, the time of each kernel of a step on CUDA, in JSON
#include <benchmark/benchmark.h>

#include <filesystem>
#include <iostream>
#include <optional>
#include <random>
#include <thread>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/engine/engine.h"
#include "runmanager/config/run_config.h"
#include "runmanager/sweepfile/settings/settings.h"
#include "tools/benchmarks/engine_benchmark.h"

namespace {

using namespace sweep;

struct Case {
  std::filesystem::path network;
  Shape input;
  std::size_t batch_size, samples;
};

Subset random_samples(const Case& c, std::int64_t classes) {
  std::mt19937 random(1);
  std::vector<std::uint8_t> pixels(c.samples * element_count(c.input));
  std::vector<std::int32_t> labels(c.samples);
  for (std::uint8_t& pixel : pixels) pixel = static_cast<std::uint8_t>(random());
  for (std::int32_t& label : labels)
    label = static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(classes));
  return {std::make_shared<TensorDataset>(TensorDataset{c.input, std::move(pixels), std::move(labels)}), 0,
          c.samples};
}

Network load_network(const Case& c) {
  Problems problems;
  const JsonDocument file = parse_json(read_file(c.network), c.network.string());
  const auto network = complete_network(file, problems);
  problems.throw_if_any();
  return Network(network_of(network), c.input);
}

std::unique_ptr<Engine> new_engine(const Network& network, const Case& c, EngineOptions options) {
  options.batch_size = c.batch_size;
  options.optimizer = AdamOptions{};
  auto engine = make_engine(network, options);
  engine->set_parameters(initial_parameters(network, 1));
  return engine;
}

// FLOP/s count every operation of the layers' formulas, even those that kernels avoid.
void train(benchmark::State& state, const Case& c, const EngineOptions& options) {
  const Network network = load_network(c);
  const auto engine = new_engine(network, c, options);
  DataLoader loader(random_samples(c, network.output()[0]), {.batch_size = c.batch_size, .shuffle = true});
  engine->prepare(loader.samples(), {});
  std::uint32_t number = 0;
  const auto epoch = [&] {
    loader.begin_epoch(number++);
    while (const Batch* batch = loader.next()) engine->train(*batch, 1e-4);
    benchmark::DoNotOptimize(engine->take_totals());  // Waits for an asynchronous device.
  };
  epoch();  // Warm-up.
  for (auto _ : state) epoch();
  const double images = static_cast<double>(state.iterations()) * static_cast<double>(c.samples);
  using benchmark::Counter;
  state.counters["images/s"] = Counter(images, Counter::kIsRate);
  state.counters["dense_FLOP/s"] = Counter(images * network.training_flops(), Counter::kIsRate);
}

// Steps one by one, over one batch that is on the device; the first ones are for warm-up.
void print_kernel_times([[maybe_unused]] const Case& c, [[maybe_unused]] const EngineOptions& options,
                        [[maybe_unused]] int steps) {
#if defined(SWEEP_KERNEL_TIMES)
  const Network network = load_network(c);
  KernelTimes times;
  const auto engine = new_engine(network, c, options);
  DataLoader loader(random_samples({c.network, c.input, c.batch_size, c.batch_size}, network.output()[0]),
                    {.batch_size = c.batch_size});
  loader.begin_epoch(0);
  const Batch& batch = *loader.next();
  for (int step = -(steps + 9) / 10; step < steps; ++step) {
    engine->train(batch, 1e-4);
    engine->take_totals();  // Waits for the device.
    if (step >= 0) times.add_step();
  }
  nlohmann::ordered_json json = {{"network", network.name()}, {"batch", c.batch_size}};
  json.update(times.json());
  std::cout << json.dump() << "\n";
#else
  throw ConfigError("--kernel-times: this build has no CUDA");
#endif
}

void peak(benchmark::State& state, int threads) {
  double operations = 0;
  for (auto _ : state) {
    std::vector<double> done(static_cast<std::size_t>(threads));
    std::vector<std::thread> others;
    for (std::size_t t = 0; t < done.size(); ++t)
      others.emplace_back([&done, t] { done[t] = run_fma_rounds(5'000'000); });
    for (std::thread& other : others) other.join();
    for (const double d : done) operations += d;
  }
  state.counters["FLOP/s"] = benchmark::Counter(operations, benchmark::Counter::kIsRate);
}

std::vector<Case> examples() {
  const std::filesystem::path networks = SWEEP_NETWORKS;
  std::vector<Case> cases;
  const auto add = [&](const char* file, const Shape& input, std::size_t samples,
                       std::initializer_list<std::size_t> sizes) {
    for (const std::size_t size : sizes) cases.push_back({networks / file, input, size, samples});
  };
  add("fashion-cnn.json", {1, 28, 28}, 60000, {100, 1000, 10000});
  add("mlp.json", {1, 28, 28}, 60000, {128});
  add("cats-dogs.json", {1, 50, 50}, 1000, {32, 100, 1000});
  add("resnet.json", {3, 32, 32}, 512, {128});
  return cases;
}

// Removes flag `name` and its value from the arguments; returns the value.
std::optional<std::string> extract_flag(std::vector<char*>& arguments, std::string_view name) {
  for (std::size_t i = 1; i + 1 < arguments.size(); ++i) {
    if (arguments[i] != name) continue;
    std::string value = arguments[i + 1];
    arguments.erase(arguments.begin() + static_cast<std::ptrdiff_t>(i),
                    arguments.begin() + static_cast<std::ptrdiff_t>(i) + 2);
    return value;
  }
  return std::nullopt;
}

Shape parse_shape(const std::string& text) {
  Shape shape;
  std::istringstream in(text);
  for (std::string extent; std::getline(in, extent, ',');) shape.push_back(std::stoll(extent));
  return shape;
}

int run(int argc, char** argv) {
  std::vector<char*> arguments(argv, argv + argc);
  const int threads = std::stoi(extract_flag(arguments, "--threads").value_or("1"));
  EngineOptions options;
  options.threads = threads;
  options.device = parse_device(extract_flag(arguments, "--device").value_or("cpu"));
  options.placement = placement_names().parse(extract_flag(arguments, "--placement").value_or("auto"));
  std::vector<Case> cases = examples();
  if (const auto network = extract_flag(arguments, "--network")) {
    cases = {{*network, parse_shape(extract_flag(arguments, "--input").value_or("1,28,28")),
              std::stoul(extract_flag(arguments, "--batch").value_or("100")),
              std::stoul(extract_flag(arguments, "--samples").value_or("1000"))}};
  }
  if (const auto steps = extract_flag(arguments, "--kernel-times")) {
    for (const Case& c : cases) print_kernel_times(c, options, std::stoi(*steps));
    return 0;
  }
  int count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 2;
  benchmark::RegisterBenchmark("multiply_add_peak", [=](benchmark::State& state) { peak(state, threads); })
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime();
  register_conv_benchmarks();
  for (const Case& c : cases) {
    const std::string name = "epoch/" + c.network.stem().string() + "/" + std::to_string(c.batch_size);
    benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) { train(state, c, options); })
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime();
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "engine_benchmark: " << error.what() << "\n";
    return 2;
  }
}
