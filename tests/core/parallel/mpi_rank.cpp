// What the ranks of mpi_test.cpp do: `mpi_rank TASK [RANK]`.
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <string_view>
#include <thread>

#include "core/parallel/group_engine.h"
#include "core/parallel/mpi_session.h"
#include "core/parallel/replicated_engine.h"
#include "tests/core/parallel/communicator_contract.h"
#include "tests/core/parallel/forwarding_communicator.h"
#include "tests/core/parallel/parallel_training.h"

namespace {

using namespace sweep;

#ifdef SWEEP_CUDA_ON_HOST
// Stand-in devices, one in each process: the bits are those of two of one process.
constexpr Device kDevice{DeviceType::kCuda, 0};
constexpr int kReference = 2;
#else
constexpr Device kDevice;
constexpr int kReference = 1;
#endif

// A rank that is killed when all have the third batch, its samples and then its labels: the others exchange
// results without it.
class DyingCommunicator final : public test::ForwardingCommunicator {
 public:
  DyingCommunicator(Communicator& group, bool dies) : ForwardingCommunicator(group), dies_(dies) {}
  void scatter(const SharedArray& array) override {
    ForwardingCommunicator::scatter(array);
    ++batches_;
  }
  void broadcast(std::span<std::byte> data) override {
    ForwardingCommunicator::broadcast(data);
    if (dies_ && batches_ == 3) std::raise(SIGKILL);
  }

 private:
  const bool dies_;
  int batches_ = 0;
};

EngineOptions device_options(const test::Training& training, int data) {
  EngineOptions options = test::options_of(training, data, 1);
  options.device = kDevice;
  return options;
}

// Trains until a rank is killed.
int train_on(Communicator& group) {
  if (group.rank() > 0) return serve_replicas(group);
  const SgdOptions momentum{.momentum = 0.9};
  const test::Training training{
      "mlp", test::mlp(), {1, 8, 8}, momentum, 0, 1, std::vector<std::size_t>(200, 20)};
  const Network network(training.network, training.input);
  const auto engine = make_engine_on(group, network, device_options(training, group.size()));
  engine->set_parameters(initial_parameters(network, 3));
  test::train_batches(*engine, training, 0, training.batches.size());
  engine->take_totals();
  return 0;
}

// Rank 0: each training on all ranks, and in this process alone.
int compare_trainings(Communicator& group) {
  for (const test::Training& training : test::trainings()) {
    const Network network(training.network, training.input);
    const auto together = make_engine_on(group, network, device_options(training, group.size()));
    const test::TrainedState trained = test::train(training, *together, network);
    const auto alone = make_engine(network, device_options(training, kReference));
    if (trained != test::train(training, *alone, network)) {
      std::cout << training.name << ": other bits\n";
      return 1;
    }
    std::cout << training.name << ": same bits\n";
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view task = argc > 1 ? argv[1] : "";
  const bool may_be_late = task == "contract" || task == "train";
  MpiSession session(may_be_late ? 30 : task == "train-killed" ? 3 : 1);
  Communicator& group = session.world();
  if (task == "contract") {
    const std::string broken = test::broken_contract(group);
    if (!broken.empty()) std::cout << "broken: " << broken << "\n";
    return broken.empty() ? 0 : 1;
  }
  if (task == "train") {
    if (group.rank() > 0) return serve_replicas(group);
    const int result = compare_trainings(group);
    end_replicas(group, result);
    return result;
  }
  // Rank argv[2] is stopped or killed: in an exchange, or while the others wait for rank 0's next command.
  const int lost = argc > 2 ? std::atoi(argv[2]) : 0;
  const int signal = task.ends_with("stopped") ? SIGSTOP : SIGKILL;
  if (task == "train-killed") {
    DyingCommunicator dying(group, group.rank() == lost);
    return train_on(dying);
  }
  if (task == "exchange-stopped" || task == "exchange-killed") {
    group.barrier();
    if (group.rank() == lost) std::raise(signal);
    group.barrier();
    return 0;
  }
  if (task == "idle-stopped" || task == "idle-killed") {
    group.barrier();
    if (group.rank() == lost) std::raise(signal);
    if (group.rank() > 0) return serve_replicas(group);
    end_replicas(group, 0);
    return 0;
  }
  if (task == "scatter-stopped") {
    // Rank 1 has its byte and goes on before rank 0 begins to wait.
    std::vector<std::byte> array(30 << 20);
    const std::vector<std::size_t> begins{0, 0, 1, array.size()};
    group.barrier();
    if (group.rank() == lost) std::raise(signal);
    group.scatter({array.data(), begins});
    group.barrier();
    return 0;
  }
  if (task == "busy") {
    if (group.rank() > 0) return serve_replicas(group);
    std::this_thread::sleep_for(std::chrono::seconds(3));  // longer than the deadline
    end_replicas(group, 0);
    return 0;
  }
  return 2;
}
