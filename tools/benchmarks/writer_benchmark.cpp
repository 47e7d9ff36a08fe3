// Measures tbwriter: the time in the calling thread, and the time until everything is in the file.
// writer_speed.py runs it in turn with PyTorch's writer.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "tbwriter/event_reader.h"
#include "tbwriter/record.h"
#include "tbwriter/summary_writer.h"

namespace {

using namespace sweep::tbwriter;

class Directory {
 public:
  Directory()
      : path_(std::filesystem::temp_directory_path() / ("tbwriter-benchmark-" + std::to_string(::getpid()))) {
    std::filesystem::remove_all(path_);
  }
  ~Directory() { std::filesystem::remove_all(path_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

std::vector<float> normal_values(std::size_t n) {
  std::mt19937 random(0);
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  std::ranges::generate(values, [&] { return normal(random); });
  return values;
}

// Writes files of `events` events. Opening and closing the file is part of the measured time.
template <class Add>
void whole_files(benchmark::State& state, int events, Add add) {
  const Directory directory;
  for (auto _ : state) {
    {
      SummaryWriter writer(directory.path());
      for (int step = 0; step < events; ++step) add(writer, step);
      writer.close();
    }
    state.PauseTiming();
    std::filesystem::remove_all(directory.path());
    state.ResumeTiming();
  }
  state.SetItemsProcessed(state.iterations() * events);
}

void Scalars(benchmark::State& state) {
  whole_files(state, 1'000'000,
              [](SummaryWriter& writer, int step) { writer.add_scalar("Loss", step * 0.5, step); });
}
BENCHMARK(Scalars)->UseRealTime()->Unit(benchmark::kMillisecond);

void Histograms(benchmark::State& state) {
  const std::vector<float> values = normal_values(10'000);
  whole_files(state, 10'000,
              [&](SummaryWriter& writer, int step) { writer.add_histogram("conv1.weight", values, step); });
}
BENCHMARK(Histograms)->UseRealTime()->Unit(benchmark::kMillisecond);

void Grids(benchmark::State& state) {
  std::mt19937 random(0);
  std::uniform_real_distribution<float> uniform;
  std::vector<float> pixels(242 * 242);
  std::ranges::generate(pixels, [&] { return uniform(random); });
  whole_files(state, 300, [&](SummaryWriter& writer, int step) {
    writer.add_image_grid("images", pixels, {.count = 1, .channels = 1, .height = 242, .width = 242}, step,
                          {.padding = 0});
  });
}
BENCHMARK(Grids)->UseRealTime()->Unit(benchmark::kMillisecond);

// The median time of single calls in the calling thread, without the cost of reading the clock.
void AddScalarMedian(benchmark::State& state) {
  using Clock = std::chrono::steady_clock;
  const Directory directory;
  SummaryWriter writer(directory.path());
  std::int64_t step = 0;
  const auto median = [](std::vector<double>& times) {
    std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
    return times[times.size() / 2];
  };
  std::vector<double> clock, calls;
  for (auto _ : state) {
    const auto start = Clock::now();
    const auto between = Clock::now();
    writer.add_scalar("Loss/train", 0.5, step++);
    const auto end = Clock::now();
    clock.push_back(std::chrono::duration<double, std::nano>(between - start).count());
    calls.push_back(std::chrono::duration<double, std::nano>(end - between).count());
  }
  state.counters["median_ns"] = median(calls) - median(clock);
}
BENCHMARK(AddScalarMedian)->Iterations(1'000'000);

void Crc32c(benchmark::State& state) {
  const std::string bytes(static_cast<std::size_t>(state.range(0)), 'x');
  for (auto _ : state) benchmark::DoNotOptimize(crc32c(bytes));
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(Crc32c)->Arg(32)->Arg(1 << 10)->Arg(1 << 16)->Arg(1 << 20);

void ReadAndCheck(benchmark::State& state) {
  const Directory directory;
  SummaryWriter writer(directory.path());
  const std::vector<float> values = normal_values(10'000);
  for (int step = 0; step < state.range(0); ++step) writer.add_scalar("Loss", step, step);
  for (int step = 0; step < state.range(1); ++step) writer.add_histogram("conv1.weight", values, step);
  writer.close();
  std::uint64_t bytes = 0;
  for (auto _ : state) bytes += check_events_file(writer.path()).bytes;
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes));
}
BENCHMARK(ReadAndCheck)
    ->Args({1'000'000, 0})
    ->Args({0, 20'000})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace

// writer_benchmark --write DIRECTORY writes a run of scalars and one of histograms, about 400
// MB, for `sweep fsck` to read.
int main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == "--write") {
    const std::vector<float> values = normal_values(10'000);
    SummaryWriter scalars(std::filesystem::path(argv[2]) / "scalars");
    for (int step = 0; step < 5'000'000; ++step) scalars.add_scalar("Loss", step * 0.5, step);
    SummaryWriter histograms(std::filesystem::path(argv[2]) / "histograms");
    for (int step = 0; step < 60'000; ++step) histograms.add_histogram("conv1.weight", values, step);
    return 0;
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
