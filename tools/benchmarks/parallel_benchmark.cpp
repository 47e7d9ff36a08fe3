// Data parallel training against one process with as many threads: `parallel_benchmark`, or with ranks
// `mpirun -n 2 parallel_benchmark`. Times are per step, the least of interleaved rounds.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "core/network/network.h"
#include "core/parallel/group_engine.h"
#include "core/parallel/mpi_session.h"
#include "core/parallel/replicated_engine.h"

namespace {

using namespace sweep;

LayerSpec conv(std::string name, std::int64_t channels) {
  return {std::move(name), "conv2d", {{"out_channels", channels}, {"kernel_size", std::int64_t{5}}}};
}
LayerSpec linear(std::string name, std::int64_t features) {
  return {std::move(name), "linear", {{"out_features", features}}};
}
LayerSpec pool(std::string name) {
  return {std::move(name), "max_pool2d", {{"kernel_size", std::int64_t{2}}}};
}

// The network of sweeps/fashion.json.
Network cnn() {
  return Network({"cnn",
                  {conv("conv1", 6),
                   {"relu1", "relu"},
                   pool("pool1"),
                   conv("conv2", 12),
                   {"relu2", "relu"},
                   pool("pool2"),
                   {"flatten", "flatten"},
                   linear("fc1", 120),
                   {"relu3", "relu"},
                   linear("fc2", 60),
                   {"relu4", "relu"},
                   linear("out", 10)}},
                 {1, 28, 28});
}

struct Contender {
  std::string name;
  std::unique_ptr<Engine> engine;
  double least = 1e9, waiting = 0;  // seconds per step; of them exposed communication, in the least round
};

void measure(std::vector<Contender>& contenders, std::size_t batch_size, int rounds, int steps) {
  std::vector<std::uint8_t> pixels(batch_size * 784);
  std::vector<std::int32_t> labels(batch_size);
  std::vector<std::uint32_t> rows(batch_size);
  for (std::size_t i = 0; i < pixels.size(); ++i)
    pixels[i] = static_cast<std::uint8_t>(i * 2654435761U >> 24);
  for (std::size_t i = 0; i < batch_size; ++i) {
    labels[i] = static_cast<std::int32_t>(i % 10);
    rows[i] = static_cast<std::uint32_t>(i);
  }
  const Batch batch{.samples = std::span<const std::uint8_t>(pixels),
                    .targets = std::span<const std::int32_t>(labels),
                    .rows = rows};
  for (int round = 0; round < rounds; ++round) {
    for (Contender& contender : contenders) {
      contender.engine->take_communication_seconds();
      const auto begin = std::chrono::steady_clock::now();
      for (int step = 0; step < steps; ++step) contender.engine->train(batch, 0.01);
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
      const double waiting = contender.engine->take_communication_seconds().value_or(0);
      if (seconds.count() / steps < contender.least) {
        contender.least = seconds.count() / steps;
        contender.waiting = waiting / steps;
      }
    }
  }
  for (const Contender& contender : contenders) {
    std::printf("batch %4zu  %-24s %8.3f ms per step, of them %6.3f ms exposed communication\n", batch_size,
                contender.name.c_str(), contender.least * 1e3, contender.waiting * 1e3);
  }
}

void compare(std::size_t batch_size, int rounds, Communicator* group) {
  const Network network = cnn();
  const std::vector<float> parameters = initial_parameters(network, 1);
  std::vector<Contender> contenders;
  const auto add = [&](const std::string& name, int data, int threads, Communicator* ranks) {
    EngineOptions options;
    options.batch_size = batch_size;
    options.threads = threads;
    options.optimizer = AdamOptions{};
    options.parallel.data = data;
    contenders.push_back(
        {name, ranks != nullptr ? make_engine_on(*ranks, network, options) : make_engine(network, options)});
    contenders.back().engine->set_parameters(parameters);
  };
  add("1 device x 1 thread", 1, 1, nullptr);
  if (group == nullptr) {
    add("1 device x 2 threads", 1, 2, nullptr);
    add("2 devices x 1 thread", 2, 2, nullptr);
  } else {
    add(std::to_string(group->size()) + " MPI ranks x 1 thread", group->size(), 1, group);
  }
  measure(contenders, batch_size, rounds, batch_size >= 1000 ? 3 : 20);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 150;
  std::unique_ptr<MpiSession> session;
  if (is_started_by_mpi()) session = std::make_unique<MpiSession>();
  Communicator* group = session ? &session->world() : nullptr;
  if (group != nullptr && group->rank() > 0) return serve_replicas(*group);
  for (const std::size_t batch_size : {1000, 100}) compare(batch_size, rounds, group);
  if (group != nullptr) end_replicas(*group, 0);
  return 0;
}
