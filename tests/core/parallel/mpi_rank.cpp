// What the ranks of mpi_test.cpp do: `mpi_rank TASK [RANK]`.
#include <csignal>

#include "core/kernels/cpu/cpu_engine.h"
#include "core/parallel/communicator.h"
#include "core/parallel/mpi_session.h"
#include "core/parallel/replicated_engine.h"
#include "tests/core/parallel/communicator_contract.h"
#include "tests/core/parallel/forwarding_communicator.h"
#include "tests/support/training.h"

namespace {

using namespace sweep;

// Stand-in devices, one in each process, have the bits of two of one process.
const int kReference = test::device_is_stand_in() ? 2 : 1;

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

// Trains until a rank is killed.
int train_on(Communicator& group) {
  if (group.rank() > 0) return serve_replicas(group);
  const test::Training training{test::mlp(),
                                {1, 8, 8},
                                test::options_with(SgdOptions{.momentum = 0.9}),
                                std::vector<std::size_t>(200, 20)};
  const auto engine =
      make_engine_on(group, test::network_of(training), test::options_of(training, {.data = group.size()}));
  test::take_steps(*engine, training);
  engine->take_totals();
  return 0;
}

// Rank 0: each training on all ranks, and in this process alone; every other one in parts.
int compare_trainings(Communicator& group) {
  int accumulate = 3;
  for (const test::Training& training : test::shared_trainings()) {
    accumulate = 4 - accumulate;
    const auto together =
        make_engine_on(group, test::network_of(training),
                       test::options_of(training, {.data = group.size(), .accumulate = accumulate}));
    const test::EngineOutcome alone =
        test::train(training, test::Way{.data = kReference, .accumulate = accumulate});
    const auto same = test::same_bits(test::train(*together, training), alone);
    std::cout << training.network.name << ": " << (same ? "same bits" : same.message()) << "\n";
    if (!same) return 1;
  }
  return 0;
}

// Engines that one rank cannot make, and one that all can.
int make_engines(Communicator& group) {
  constexpr std::uint64_t kFails = 1000;  // seed, of rank 0
  const MakeReplica make = [](const Network& network, const EngineOptions& options, Communicator& ranks) {
    on_all_ranks(ranks, [&] {
      if (options.seed == kFails + static_cast<std::uint64_t>(ranks.rank())) throw std::bad_alloc();
    });
    return make_cpu_replica(network, options, ranks);
  };
  if (group.rank() > 0) return serve_replicas(group, make);
  const test::Training training = test::shared_trainings().front();
  EngineOptions options = test::options_of(training, {.data = group.size()});
  for (int rank = 0; rank < group.size(); ++rank) {
    EngineOptions failing = options;
    failing.seed = kFails + static_cast<std::uint64_t>(rank);
    try {
      make_group_engine(test::network_of(training), failing, group, make);
    } catch (const ReplicaError& error) {
      std::cout << error.what() << "\n";
    }
  }
  const auto engine = make_group_engine(test::network_of(training), options, group, make);
  const auto same = test::same_bits(test::train(*engine, training), test::train(training, test::Way{}));
  std::cout << (same ? "same bits" : same.message()) << "\n";
  return same ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view task = argc > 1 ? argv[1] : "";
  const bool may_be_late = task == "contract" || task == "train" || task == "make";
  const auto session = start_mpi_session(may_be_late ? 30 : task == "train-killed" ? 3 : 1);
  Communicator& group = session->world();
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
  if (task == "make") {
    const int result = make_engines(group);
    if (group.rank() == 0) end_replicas(group, result);
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
