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
#include "tests/core/parallel/parallel_training.h"

namespace {

using namespace sweep;

// Rank 0: each training on all ranks, and on this one alone.
int compare_trainings(Communicator& group) {
  for (const test::Training& training : test::trainings()) {
    const Network network(training.network, training.input);
    const auto train = [&](int data) {
      const EngineOptions options = test::options_of(training, data, 1);
      const auto engine = data > 1 ? make_engine_on(group, network, options) : make_engine(network, options);
      return test::train(training, *engine, network);
    };
    if (train(group.size()) != train(1)) {
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
  MpiSession session(may_be_late ? 30 : 1);
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
